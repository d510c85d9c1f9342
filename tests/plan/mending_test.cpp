// Alternates, repairs and joins on random clusters: what comes out is checked like any plan, with
// what is verified as its start.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/plan/alternates.hpp"
#include "core/plan/checker.hpp"
#include "core/plan/join.hpp"
#include "core/plan/planner.hpp"
#include "core/plan/repair.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::ClusterShape;
using testing_support::DemandShape;
using testing_support::make_cluster;
using testing_support::make_demand;
using testing_support::random_demand;
using testing_support::random_shape;

constexpr std::array kPolicies{Policy::Star, Policy::Chain, Policy::TwoTree, Policy::Hierarchical};

std::string listing(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& v : violations) {
    text += fmt::format("{} {}: {}\n", to_string(v.code), v.pointer, v.message);
  }
  return text;
}

// No choice of parents and alternates closes a circle: everybody can be put in an order in which
// both come first.
bool never_a_circle(const Stripe& stripe, const std::vector<WorkerId>& holders) {
  std::map<WorkerId, std::vector<WorkerId>> waits;
  for (const Edge& edge : stripe.edges) {
    for (const WorkerId w : {edge.parent, edge.alternate}) {
      if (w.valid()) waits[edge.child].push_back(w);
    }
  }
  std::set<WorkerId> ready(holders.begin(), holders.end());
  for (bool more = true; more;) {
    more = false;
    for (auto at = waits.begin(); at != waits.end();) {
      const bool all = std::all_of(at->second.begin(), at->second.end(),
                                   [&](WorkerId w) { return ready.contains(w); });
      if (!all) {
        ++at;
        continue;
      }
      ready.insert(at->first);
      at = waits.erase(at);
      more = true;
    }
  }
  return waits.empty();
}

TEST(Alternates, NeverCloseACircle) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = make_cluster(random_shape(random));
    const Demand demand = random_demand(topology, random);
    const Router router(topology);
    const Policy policy = kPolicies[random() % kPolicies.size()];
    const Plan plan = make_plan(policy, router, demand, {seed}).plan;
    for (const Stripe& stripe : plan.stripes) {
      const auto& holders = demand.classes[stripe.block_class.index()].holders;
      ASSERT_TRUE(never_a_circle(stripe, holders)) << to_string(policy);
    }
    Plan again = plan;
    choose_alternates(again, demand, topology);
    for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
      EXPECT_EQ(again.stripes[s].edges.size(), plan.stripes[s].edges.size());
    }
    EXPECT_EQ(listing(check(again, demand, router)), "");
  }
}

// On a machine with many hosts nearly everybody has one, in another host than the parent, most in
// another rack, and nobody is chosen much more often than others.
TEST(Alternates, AreElsewhereAndSpread) {
  const Topology topology = make_cluster({.racks = 4, .hosts = 8, .spines = 4});
  const Router router(topology);
  for (const bool sharded : {true, false}) {
    const Demand demand = make_demand(topology, {.sharded = sharded});
    for (const Policy policy : {Policy::Chain, Policy::TwoTree, Policy::Hierarchical}) {
      SCOPED_TRACE(fmt::format("{} {}", to_string(policy), sharded));
      const Plan plan = make_plan(policy, router, demand, {}).plan;
      std::size_t edges = 0;
      std::size_t with = 0;
      std::size_t same_host = 0;
      std::size_t same_rack = 0;
      std::map<WorkerId, std::size_t> chosen;
      for (const Stripe& stripe : plan.stripes) {
        for (const Edge& edge : stripe.edges) {
          ++edges;
          if (!edge.alternate.valid()) continue;
          ++with;
          ++chosen[edge.alternate];
          const NodeId a = demand.workers[edge.alternate.index()].node;
          const NodeId p = demand.workers[edge.parent.index()].node;
          if (topology.around(a, Level::Host) == topology.around(p, Level::Host)) ++same_host;
          if (topology.around(a, Level::Rack) == topology.around(p, Level::Rack)) ++same_rack;
          EXPECT_TRUE(
              path_to_alternate(router, a, demand.workers[edge.child.index()].node, edge.path)
                  .source_port.valid());
        }
      }
      EXPECT_GE(with + plan.stripes.size(), edges) << "one in a stripe may have none";
      EXPECT_LE(same_host * 10, edges);
      EXPECT_LE(same_rack * 2, edges);
      std::size_t most = 0;
      for (const auto& [worker, times] : chosen) most = std::max(most, times);
      EXPECT_LE(most * demand.workers.size(), edges * 12);
    }
  }
}

// What survivors have after some of the plan was carried out: parents at least what children have.
Holdings halfway(const Demand& demand, const Plan& plan, std::mt19937_64& random) {
  Holdings holdings;
  for (const Stripe& stripe : plan.stripes) {
    const std::vector<BlockId> blocks = blocks_of(demand, stripe);
    std::map<WorkerId, std::size_t> has;
    for (const WorkerId w : demand.classes[stripe.block_class.index()].holders) {
      has[w] = blocks.size();
    }
    std::vector<Edge> left = stripe.edges;
    while (!left.empty()) {
      for (auto at = left.begin(); at != left.end();) {
        const auto parent = has.find(at->parent);
        if (parent == has.end()) {
          ++at;
          continue;
        }
        const std::size_t got = parent->second - random() % (parent->second + 1) / 3;
        has[at->child] = got;
        for (std::size_t k = 0; k < got; ++k) holdings.add(at->child, {blocks[k], 1});
        at = left.erase(at);
      }
    }
  }
  return holdings;
}

// A repair as a delta.
PlanDelta delta_of(const Demand& after, const Plan& plan, const Repair& repair,
                   std::span<const WorkerId> dead, const Holdings& holdings) {
  std::vector<EdgeDrop> drops;
  std::vector<EdgeAdd> adds;
  std::set<std::pair<StripeId, WorkerId>> moved;
  for (const MendedEdge& mended : repair.edges) {
    const Edge& edge = mended.edge;
    moved.emplace(mended.stripe, edge.child);
    drops.push_back({edge.child, mended.stripe});
    const std::uint32_t from =
        first_missing(holdings, after, plan.stripes[mended.stripe.index()], edge.child);
    adds.push_back(
        {edge.child, mended.stripe, edge.parent, edge.alternate, from, edge.path, edge.window});
  }
  for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
    for (const Edge& edge : plan.stripes[s].edges) {
      const bool gone = std::binary_search(dead.begin(), dead.end(), edge.child);
      const bool stale = std::binary_search(dead.begin(), dead.end(), edge.alternate);
      if (gone) drops.push_back({edge.child, StripeId(s)});
      if (gone || !stale || moved.contains({StripeId(s), edge.child})) continue;
      // Its alternate died: the same edge without one.
      drops.push_back({edge.child, StripeId(s)});
      adds.push_back({edge.child, StripeId(s), edge.parent, {}, 0, edge.path, edge.window});
    }
  }
  const auto delta = make_delta(after, plan, std::move(drops), std::move(adds));
  EXPECT_TRUE(delta);
  return delta ? *delta : PlanDelta{};
}

TEST(Mending, RepairedPlansPassTheChecker) {
  std::size_t mended = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = make_cluster(random_shape(random));
    const Demand demand = random_demand(topology, random);
    const Router router(topology);
    const Plan plan =
        make_plan(kPolicies[random() % kPolicies.size()], router, demand, {seed}).plan;
    const Holdings holdings = halfway(demand, plan, random);
    // Anybody but the last holder of a class dies.
    std::set<WorkerId> spared;
    for (const BlockClass& c : demand.classes) {
      for (const WorkerId w : c.holders) {
        if (!demand.workers[w.index()].may_serve) continue;
        spared.insert(w);
        break;
      }
    }
    RepairTask task;
    for (std::size_t w = 0; w < demand.workers.size(); ++w) {
      (random() % 5 == 0 && !spared.contains(WorkerId(w)) ? task.lost : task.readers)
          .emplace_back(w);
    }
    const Repair repair = mend(router, demand, plan, task);
    if (!repair.unmended.empty()) continue;  // nothing joins them any more
    ++mended;
    const Demand after = mended_demand(demand, task.lost, {});
    const PlanDelta delta = delta_of(after, plan, repair, task.lost, holdings);
    EXPECT_EQ(listing(check_delta(plan, delta, after, router, holdings)), "");
    const auto result = apply(after, plan, delta);
    ASSERT_TRUE(result);
    for (const Stripe& stripe : result->stripes) {
      const auto& holders = after.classes[stripe.block_class.index()].holders;
      EXPECT_TRUE(never_a_circle(stripe, holders));
    }
  }
  EXPECT_GT(mended, 60U);
}

// Workers of the last host come later: they get everything, nobody else's parent changes, and the
// new parents' ports had room.
TEST(Joins, FillThePortsOfTheJoinerFromManyParents) {
  const Topology topology = make_cluster({.racks = 2, .hosts = 8, .spines = 4});
  const Router router(topology);
  Demand demand = make_demand(topology, {.sharded = true, .blocks = 256});
  std::vector<WorkerId> late;
  for (std::size_t w = 0; w < demand.workers.size(); ++w) {
    const std::string& name = topology.node(demand.workers[w].node).name;
    if (name.find("r1.h7.") != std::string::npos) late.emplace_back(w);
  }
  ASSERT_EQ(late.size(), 8U);
  std::vector<Joiner> joiners;
  for (const WorkerId w : late) {
    Joiner& joiner = joiners.emplace_back();
    joiner.worker = w;
    for (std::size_t c = 0; c < demand.classes.size(); ++c) {
      auto& receivers = demand.classes[c].receivers;
      const auto at = std::find(receivers.begin(), receivers.end(), w);
      if (at == receivers.end()) continue;
      receivers.erase(at);
      joiner.classes.emplace_back(c);
    }
  }
  const Plan plan = make_plan(Policy::Hierarchical, router, demand, {}).plan;
  JoinTask task;
  task.joiners = joiners;
  for (std::size_t w = 0; w < demand.workers.size(); ++w) task.receiving.emplace_back(w);
  const Holdings nothing;
  const Joined joined = join(router, demand, plan, task, nothing);
  EXPECT_TRUE(joined.unplaced.empty());
  EXPECT_TRUE(joined.delta.drops.empty());
  EXPECT_EQ(listing(check_delta(plan, joined.delta, joined.demand, router, nothing)), "");
  // What each port sends and receives of the joiners' bytes.
  std::map<NodeId, std::uint64_t> busy;
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) busy[edge.path.source_port] += stripe.blocks.count();
  }
  std::map<NodeId, std::uint64_t> into;
  std::map<WorkerId, std::set<WorkerId>> parents;
  std::map<WorkerId, std::size_t> stripes;
  for (const EdgeAdd& add : joined.delta.adds) {
    const std::uint64_t blocks = plan.stripes[add.stripe.index()].blocks.count();
    busy[add.path.source_port] += blocks;
    into[add.path.destination_port] += blocks;
    parents[add.child].insert(add.parent);
    ++stripes[add.child];
  }
  std::uint64_t most_in = 0;
  std::uint64_t all_in = 0;
  for (const auto& [port, blocks] : into) {
    most_in = std::max(most_in, blocks);
    all_in += blocks;
  }
  EXPECT_LE(most_in * 8, all_in * 11 / 10) << "the joiners' NICs are used evenly";
  // A shard is 256 blocks: no port of a parent sends more than in the plan it was part of.
  for (const EdgeAdd& add : joined.delta.adds) EXPECT_LE(busy[add.path.source_port], 256U * 5 / 4);
  for (const WorkerId w : late) EXPECT_GE(parents[w].size() * 2, stripes[w]);
}

TEST(Joins, RandomJoinersPassTheChecker) {
  std::size_t joins = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = make_cluster(random_shape(random));
    Demand demand = random_demand(topology, random);
    const Router router(topology);
    JoinTask task;
    for (std::size_t c = 0; c < demand.classes.size(); ++c) {
      auto& receivers = demand.classes[c].receivers;
      while (receivers.size() > 1 && random() % 3 == 0) {
        const auto at =
            receivers.begin() + static_cast<std::ptrdiff_t>(random() % receivers.size());
        const auto known = std::find_if(task.joiners.begin(), task.joiners.end(),
                                        [&](const Joiner& j) { return j.worker == *at; });
        (known == task.joiners.end() ? task.joiners.emplace_back(Joiner{*at, {}}) : *known)
            .classes.emplace_back(c);
        receivers.erase(at);
      }
    }
    const Plan plan =
        make_plan(kPolicies[random() % kPolicies.size()], router, demand, {seed}).plan;
    const Holdings holdings = halfway(demand, plan, random);
    for (std::size_t w = 0; w < demand.workers.size(); ++w) task.receiving.emplace_back(w);
    const Joined joined = join(router, demand, plan, task, holdings);
    EXPECT_TRUE(joined.unplaced.empty());
    EXPECT_EQ(listing(check_delta(plan, joined.delta, joined.demand, router, holdings)), "");
    EXPECT_TRUE(joined.delta.drops.empty());
    joins += task.joiners.size();
    EXPECT_EQ(join(router, demand, plan, task, holdings).delta, joined.delta);
  }
  EXPECT_GT(joins, 100U);
}

// Nobody who may serve: the joiner is named, and nothing of it is added.
TEST(Joins, WithoutASourceNobodyIsPlaced) {
  const Topology topology = make_cluster({.hosts = 3});
  const Router router(topology);
  Demand demand = make_demand(topology, {});
  const WorkerId late = demand.classes[0].receivers.back();
  demand.classes[0].receivers.pop_back();
  const Plan plan = make_plan(Policy::Star, router, demand, {}).plan;
  JoinTask task;
  task.joiners = {{late, {ClassId(0U)}}};
  for (std::size_t w = 0; w < demand.workers.size(); ++w) task.closed.emplace_back(w);
  const Joined joined = join(router, demand, plan, task, {});
  EXPECT_EQ(joined.unplaced, std::vector<WorkerId>{late});
  EXPECT_TRUE(joined.delta.adds.empty());
  EXPECT_EQ(joined.demand, demand);
}

class DeltaCheck : public ::testing::Test {
 protected:
  [[nodiscard]] std::string codes(const PlanDelta& delta, const Demand& after,
                                  const Holdings& holdings) const {
    std::string text;
    for (const Violation& v : check_delta(plan_, delta, after, router_, holdings)) {
      text += fmt::format("{} ", to_string(v.code));
    }
    return text;
  }
  [[nodiscard]] PlanDelta made(const Demand& after, std::vector<EdgeDrop> drops,
                               std::vector<EdgeAdd> adds) const {
    const auto delta = make_delta(after, plan_, std::move(drops), std::move(adds));
    EXPECT_TRUE(delta);
    return delta ? *delta : PlanDelta{};
  }
  // The edge of a child in the first stripe, from another parent.
  [[nodiscard]] EdgeAdd moved(WorkerId child, WorkerId parent, std::uint32_t from) const {
    EdgeAdd add;
    add.child = child;
    add.stripe = StripeId(0U);
    add.parent = parent;
    add.from_block = from;
    add.path = path_to_alternate(router_, demand_.workers[parent.index()].node,
                                 demand_.workers[child.index()].node, {});
    return add;
  }

  Topology topology_ = make_cluster({.hosts = 4, .gpus = 1, .nics = 1});
  Router router_{topology_};
  Demand demand_ = make_demand(topology_, {.sharded = false, .blocks = 4});
  Plan plan_ = make_plan(Policy::Chain, router_, demand_, {}).plan;
};

// 0 holds; the chain is 0 -> 1 -> 2 -> 3.
TEST_F(DeltaCheck, StartsWithWhatIsVerified) {
  ASSERT_EQ(plan_.stripes.size(), 1U);
  const WorkerId one(1U);
  const WorkerId two(2U);
  const WorkerId three(3U);
  ASSERT_EQ(plan_.stripes[0].edges[2].parent, two);
  const auto blocks = static_cast<std::uint32_t>(plan_.stripes[0].blocks.count());
  Holdings holdings;
  holdings.add(three, {BlockId(0U), 2});

  const PlanDelta fine = made(demand_, {{three, StripeId(0U)}}, {moved(three, one, 2)});
  EXPECT_EQ(codes(fine, demand_, holdings), "");
  EXPECT_EQ(codes(fine, demand_, {}), "NotYetThere ");
  PlanDelta other = fine;
  other.base.low ^= 1;
  EXPECT_EQ(codes(other, demand_, holdings), "BadDelta ");

  // The only holder dies. Nobody has everything: 1 waits for nobody.
  const std::vector<WorkerId> dead{WorkerId(0U)};
  const Demand after = mended_demand(demand_, dead, {});
  const PlanDelta orphaned = made(after, {{one, StripeId(0U)}}, {});
  Plan bare = plan_;
  for (Edge& edge : bare.stripes[0].edges) edge.alternate = {};
  plan_ = bare;
  const PlanDelta cut = made(after, {{one, StripeId(0U)}}, {});
  EXPECT_NE(codes(cut, after, holdings), "");
  // With all blocks at 1 everybody else gets them.
  holdings.add(one, {BlockId(0U), blocks});
  EXPECT_EQ(codes(cut, after, holdings), "");
  // One block less, and it is missing everywhere.
  Holdings short_of_one;
  short_of_one.add(one, {BlockId(0U), blocks - 1});
  EXPECT_NE(codes(cut, after, short_of_one), "");
  // Two that wait for each other are refused even though each has a part.
  const PlanDelta circle = made(after, {{one, StripeId(0U)}}, {moved(one, three, 0)});
  EXPECT_NE(codes(circle, after, {}).find("WaitCycle"), std::string::npos);
}

TEST(Holdings, SpansBecomeOneWhereTheyTouch) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    Holdings holdings;
    std::set<std::uint32_t> model;
    for (int k = 0; k < 8; ++k) {
      const auto first = static_cast<std::uint32_t>(random() % 40);
      const auto count = static_cast<std::uint32_t>(random() % 8);
      holdings.add(WorkerId(2U), {BlockId(first), count});
      for (std::uint32_t b = first; b < first + count; ++b) model.insert(b);
    }
    std::size_t total = 0;
    const auto spans = holdings.of(WorkerId(2U));
    for (std::size_t k = 0; k < spans.size(); ++k) {
      total += spans[k].count;
      if (k > 0) {
        EXPECT_GT(spans[k].first.value(), spans[k - 1].first.value() + spans[k - 1].count);
      }
    }
    EXPECT_EQ(total, model.size());
    for (std::uint32_t b = 0; b < 50; ++b) {
      EXPECT_EQ(holdings.has(WorkerId(2U), BlockId(b)), model.contains(b));
    }
  }
  EXPECT_FALSE(Holdings().has(WorkerId(7U), BlockId(0U)));
}

}  // namespace
}  // namespace holdfast
