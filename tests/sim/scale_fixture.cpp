#include "tests/sim/scale_fixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/plan/two_tree.hpp"

namespace holdfast::sim::testing {
namespace {

constexpr Rate kPcieRate(64'000'000'000);
constexpr Rate kDigestRate(2'000'000'000'000);
constexpr Rate kWidest(100'000'000'000'000);  // nothing crosses these links
constexpr Time kHop = microseconds(1);

// GPU, PCIe switch and NIC for each of `switches`, which the NICs are joined to.
void add_host(TopologyBuilder& builder, std::uint32_t number, const std::vector<NodeId>& switches) {
  const std::string host = "h" + std::to_string(number);
  const DomainId domain = builder.add_domain(host, Level::Host);
  for (std::uint32_t r = 0; r < switches.size(); ++r) {
    const auto name = [&](const char* part) { return fmt::format("{}.{}.{}", host, part, r); };
    const NodeId gpu = builder.add_node(
        {name("gpu"), NodeKind::Gpu, domain, Bytes(80'000'000'000), kDigestRate, true});
    const NodeId pcie =
        builder.add_node({name("pcie"), NodeKind::PcieSwitch, domain, {}, {}, true});
    const NodeId nic = builder.add_node({name("nic"), NodeKind::Nic, domain, {}, {}, true});
    builder.add_link({name("a"), gpu, pcie, LinkKind::Pcie, kPcieRate, kHop, {}, true});
    builder.add_link({name("b"), pcie, nic, LinkKind::Pcie, kPcieRate, kHop, {}, true});
    builder.add_link({name("c"), nic, switches[r], LinkKind::Fabric, kScaleRate, kHop, {}, true});
  }
}

Topology make_topology(std::uint32_t hosts) {
  TopologyBuilder builder("rails");
  std::vector<NodeId> rails;
  for (std::uint32_t r = 0; r < kScaleGpus; ++r) {
    rails.push_back(
        builder.add_node({"rail" + std::to_string(r), NodeKind::Switch, {}, {}, {}, true}));
  }
  const NodeId spine = builder.add_node({"spine", NodeKind::Spine, {}, {}, {}, true});
  for (std::uint32_t r = 0; r < kScaleGpus; ++r) {
    builder.add_link({"up" + std::to_string(r),
                      rails[r],
                      spine,
                      LinkKind::Fabric,
                      std::min(kScaleRate * hosts, kWidest),
                      kHop,
                      {},
                      true});
  }
  for (std::uint32_t h = 0; h < hosts; ++h) add_host(builder, h, rails);
  return builder.build();
}

Topology make_pods(std::uint32_t hosts, std::uint32_t pod_hosts) {
  TopologyBuilder builder("pods");
  const NodeId spine = builder.add_node({"spine", NodeKind::Spine, {}, {}, {}, true});
  for (std::uint32_t first = 0; first < hosts; first += pod_hosts) {
    const std::string pod = "pod" + std::to_string(first / pod_hosts);
    const NodeId leaf = builder.add_node({pod, NodeKind::Switch, {}, {}, {}, true});
    builder.add_link({pod + ".trunk",
                      leaf,
                      spine,
                      LinkKind::Fabric,
                      kScaleRate * (pod_hosts * kScaleGpus / 2),
                      kHop,
                      {},
                      true});
    for (std::uint32_t h = first; h < std::min(hosts, first + pod_hosts); ++h) {
      add_host(builder, h, std::vector<NodeId>(kScaleGpus, leaf));
    }
  }
  return builder.build();
}

Demand make_demand(const Topology& topology, std::uint32_t hosts, std::uint32_t blocks) {
  DemandBuilder builder("model", {1, 1}, Bytes(kScaleBlock),
                        std::vector<Bytes>(kScaleGpus * blocks, Bytes(kScaleBlock)));
  for (std::uint32_t h = 0; h < hosts; ++h) {
    for (std::uint32_t r = 0; r < kScaleGpus; ++r) {
      const WorkerId worker = builder.add_worker(
          {.node = topology.find_node("h" + std::to_string(h) + ".gpu." + std::to_string(r)),
           .group = h,
           .memory_free = Bytes(80'000'000'000),
           .may_serve = true});
      const BlockSpan shard{BlockId(r * blocks), blocks};
      h == 0 ? builder.holds(worker, shard) : builder.wants(worker, shard);
    }
  }
  return std::move(builder).build();
}

// Two trees for each shard; order[k] is the host at place k of the trees, the holder at 0.
Plan make_plan(const Topology& topology, const Demand& demand,
               const std::vector<std::vector<std::uint32_t>>& orders) {
  Plan plan;
  plan.topology = topology.hash();
  plan.demand = hash_of(demand);
  for (std::uint32_t c = 0; c < demand.classes.size(); ++c) {
    const std::uint32_t rail = demand.classes[c].holders[0].value();
    const auto nic = [&](std::uint32_t host) {
      return topology.find_node("h" + std::to_string(host) + ".nic." + std::to_string(rail));
    };
    for (std::uint32_t side = 0; side < 2; ++side) {
      const std::vector<std::uint32_t>& order = orders[rail];
      const auto hosts = static_cast<std::uint32_t>(order.size());
      const auto parents =
          two_tree_parents(hosts - 1, side == 0 ? TreeSide::First : TreeSide::Second);
      Stripe stripe{ClassId(c), {side, 2, block_count(demand.classes[c])}, {}};
      for (std::uint32_t k = 1; k < hosts; ++k) {
        const std::uint32_t child = order[k];
        const std::uint32_t parent = order[parents[k]];
        stripe.edges.push_back({WorkerId(child * kScaleGpus + rail),
                                WorkerId(parent * kScaleGpus + rail),
                                {},
                                {nic(parent), nic(child), 0},
                                2});
      }
      std::sort(stripe.edges.begin(), stripe.edges.end());
      plan.stripes.push_back(std::move(stripe));
    }
  }
  return plan;
}

std::vector<std::uint32_t> in_order(std::uint32_t hosts) {
  std::vector<std::uint32_t> order(hosts);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

}  // namespace

ScaleCase make_scale_case(std::uint32_t hosts, std::uint32_t blocks) {
  Topology topology = make_topology(hosts);
  Demand demand = make_demand(topology, hosts, blocks);
  const std::vector<std::vector<std::uint32_t>> orders(kScaleGpus, in_order(hosts));
  Plan plan = make_plan(topology, demand, orders);
  return {std::move(topology), std::move(demand), std::move(plan)};
}

ScaleCase make_coupled_case(std::uint32_t hosts, std::uint32_t blocks, std::uint32_t pod_hosts,
                            std::uint64_t seed) {
  Topology topology = make_pods(hosts, pod_hosts);
  Demand demand = make_demand(topology, hosts, blocks);
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::uint32_t>> orders(kScaleGpus, in_order(hosts));
  for (std::vector<std::uint32_t>& order : orders) {
    std::shuffle(order.begin() + 1, order.end(), random);
  }
  Plan plan = make_plan(topology, demand, orders);
  return {std::move(topology), std::move(demand), std::move(plan)};
}

}  // namespace holdfast::sim::testing
