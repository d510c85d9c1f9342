#include "tests/sim/scale_fixture.hpp"

#include <string>

#include "core/plan/two_tree.hpp"

namespace holdfast::sim::testing {
namespace {

constexpr Rate kPcieRate(64'000'000'000);
constexpr Rate kDigestRate(2'000'000'000'000);
constexpr Time kHop = microseconds(1);

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
                      kScaleRate * hosts,
                      kHop,
                      {},
                      true});
  }
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const std::string host = "h" + std::to_string(h);
    const DomainId domain = builder.add_domain(host, Level::Host);
    for (std::uint32_t r = 0; r < kScaleGpus; ++r) {
      const std::string tail = "." + std::to_string(r);
      const NodeId gpu = builder.add_node(
          {host + ".gpu" + tail, NodeKind::Gpu, domain, Bytes(80'000'000'000), kDigestRate, true});
      const NodeId pcie =
          builder.add_node({host + ".pcie" + tail, NodeKind::PcieSwitch, domain, {}, {}, true});
      const NodeId nic =
          builder.add_node({host + ".nic" + tail, NodeKind::Nic, domain, {}, {}, true});
      builder.add_link({host + ".a" + tail, gpu, pcie, LinkKind::Pcie, kPcieRate, kHop, {}, true});
      builder.add_link({host + ".b" + tail, pcie, nic, LinkKind::Pcie, kPcieRate, kHop, {}, true});
      builder.add_link(
          {host + ".c" + tail, nic, rails[r], LinkKind::Fabric, kScaleRate, kHop, {}, true});
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

Plan make_plan(const Topology& topology, const Demand& demand, std::uint32_t hosts) {
  Plan plan;
  plan.topology = topology.hash();
  plan.demand = hash_of(demand);
  for (std::uint32_t c = 0; c < demand.classes.size(); ++c) {
    const std::uint32_t rail = demand.classes[c].holders[0].value();
    const auto nic = [&](std::uint32_t host) {
      return topology.find_node("h" + std::to_string(host) + ".nic." + std::to_string(rail));
    };
    for (std::uint32_t side = 0; side < 2; ++side) {
      const auto parents =
          two_tree_parents(hosts - 1, side == 0 ? TreeSide::First : TreeSide::Second);
      Stripe stripe{ClassId(c), {side, 2, block_count(demand.classes[c])}, {}};
      for (std::uint32_t h = 1; h < hosts; ++h) {
        stripe.edges.push_back({WorkerId(h * kScaleGpus + rail),
                                WorkerId(parents[h] * kScaleGpus + rail),
                                {},
                                {nic(parents[h]), nic(h), 0},
                                2});
      }
      plan.stripes.push_back(std::move(stripe));
    }
  }
  return plan;
}

}  // namespace

ScaleCase make_scale_case(std::uint32_t hosts, std::uint32_t blocks) {
  Topology topology = make_topology(hosts);
  Demand demand = make_demand(topology, hosts, blocks);
  Plan plan = make_plan(topology, demand, hosts);
  return {std::move(topology), std::move(demand), std::move(plan)};
}

}  // namespace holdfast::sim::testing
