#include "tests/engine/random_updates.hpp"

#include <algorithm>

namespace holdfast::testing {

std::uint32_t below(Random& random, std::uint64_t n) {
  return static_cast<std::uint32_t>(random() % n);
}

Demand random_demand(Random& random, std::uint32_t most_blocks) {
  const std::uint32_t blocks = 1 + below(random, most_blocks);
  std::vector<Bytes> sizes;
  for (std::uint32_t b = 0; b < blocks; ++b) sizes.emplace_back(1 + below(random, 3000));
  DemandBuilder builder("test", {1 + random() % 3, random() % 10}, Bytes(3000), sizes);
  const std::uint32_t workers = 2 + below(random, 11);
  for (std::uint32_t w = 0; w < workers; ++w) builder.add_worker({NodeId(w), 0, {}, true});
  builder.holds(WorkerId(0U), {BlockId(0U), blocks});
  builder.wants(WorkerId(workers - 1), {BlockId(0U), blocks});
  for (std::uint32_t w = 1; w + 1 < workers; ++w) {
    for (const bool wants : {false, true, true}) {
      if (random() % 3 == 0) continue;
      const std::uint32_t first = below(random, blocks);
      const BlockSpan span{BlockId(first), 1 + below(random, blocks - first)};
      wants ? builder.wants(WorkerId(w), span) : builder.holds(WorkerId(w), span);
    }
  }
  return std::move(builder).build();
}

// Each class is cut into one to three stripes; each stripe is a random tree under its holders.
Plan random_plan(Random& random, const Demand& demand, bool alternates) {
  Plan plan;
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    const BlockClass& of = demand.classes[c];
    const std::uint32_t cuts = std::min(1 + below(random, 3), block_count(of));
    for (std::uint32_t cut = 0; cut < cuts; ++cut) {
      Stripe stripe;
      stripe.block_class = ClassId(c);
      stripe.blocks = {cut, cuts, block_count(of)};
      std::vector<WorkerId> sources = of.holders;
      std::vector<WorkerId> order = of.receivers;
      std::shuffle(order.begin(), order.end(), random);
      for (const WorkerId child : order) {
        Edge edge;
        edge.child = child;
        edge.parent = sources[below(random, sources.size())];
        edge.window = 1 + below(random, 5);
        if (alternates && below(random, 3) != 0) {
          edge.alternate = sources[below(random, sources.size())];
          if (edge.alternate == edge.parent) edge.alternate = {};
        }
        stripe.edges.push_back(edge);
        sources.push_back(child);
      }
      std::sort(stripe.edges.begin(), stripe.edges.end());
      plan.stripes.push_back(stripe);
    }
  }
  return plan;
}

ClusterOptions random_options(Random& random) {
  ClusterOptions options;
  options.network.seed = random();
  options.network.rate = Rate(1'000'000'000);
  options.network.lost_per_mille = random() % 2 * below(random, 300);
  options.network.doubled_per_mille = random() % 2 * below(random, 300);
  options.network.message_jitter = microseconds(random() % 2 * below(random, 200));
  options.network.read_jitter = microseconds(random() % 2 * below(random, 20));
  options.network.digest_rate = Rate(random() % 2 * 500'000'000);
  options.network.record = true;
  if (random() % 2 == 0) {
    options.network.limits = {Bytes(1 + below(random, 2000)), 1 + below(random, 3), 1};
  }
  options.engine.await_parent = false;
  options.engine.ask_interval = microseconds(200);
  options.engine.ask_interval_most = milliseconds(5);
  return options;
}

}  // namespace holdfast::testing
