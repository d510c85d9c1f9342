#include "tests/sim/sim_fixtures.hpp"

#include <string>

#include "core/plan/two_tree.hpp"

namespace holdfast::sim::testing {
namespace {

// GPU and NIC of host `i` on a switch.
void add_host(TopologyBuilder& builder, std::uint32_t i, NodeId leaf, DomainId parent,
              const StarShape& shape) {
  const std::string number = std::to_string(i);
  const DomainId host = builder.add_domain("host" + number, Level::Host, parent);
  const NodeId gpu = builder.add_node(
      {"gpu" + number, NodeKind::Gpu, host, Bytes(80'000'000'000), shape.digest_rate, true});
  const NodeId nic = builder.add_node({"nic" + number, NodeKind::Nic, host, {}, {}, true});
  builder.add_link({"pcie" + number, gpu, nic, LinkKind::Pcie, shape.rate * 10, Time(0), {}, true});
  builder.add_link(
      {"wire" + number, nic, leaf, LinkKind::Fabric, shape.rate, shape.latency / 2, {}, true});
}

}  // namespace

Topology make_star(const StarShape& shape) {
  TopologyBuilder builder("star");
  const NodeId leaf = builder.add_node({"switch", NodeKind::Switch, {}, {}, {}, true});
  for (std::uint32_t i = 0; i < shape.hosts; ++i) add_host(builder, i, leaf, {}, shape);
  return builder.build();
}

Topology make_wan(std::uint32_t hosts) {
  TopologyBuilder builder("wan");
  NodeId gateways[2];
  for (std::uint32_t side = 0; side < 2; ++side) {
    const std::string name = std::to_string(side);
    const DomainId datacenter = builder.add_domain("dc" + name, Level::Datacenter);
    const NodeId leaf =
        builder.add_node({"switch" + name, NodeKind::Switch, datacenter, {}, {}, true});
    gateways[side] =
        builder.add_node({"gateway" + name, NodeKind::Gateway, datacenter, {}, {}, true});
    builder.add_link(
        {"up" + name, leaf, gateways[side], LinkKind::Fabric, kRate * 100, Time(0), {}, true});
    for (std::uint32_t i = 0; i < hosts; ++i) {
      add_host(builder, side * hosts + i, leaf, datacenter, {});
    }
  }
  builder.add_link(
      {"wan", gateways[0], gateways[1], LinkKind::Wan, kRate * 10, kWanLatency, kStreamCap, true});
  return builder.build();
}

Demand make_demand(const Topology& topology, std::uint32_t workers, std::uint32_t blocks,
                   bool verify) {
  DemandBuilder builder("model", {1, 1}, kBlock, std::vector<Bytes>(blocks, kBlock));
  builder.set_verify(verify);
  for (std::uint32_t i = 0; i < workers; ++i) {
    const WorkerId worker =
        builder.add_worker({.node = topology.find_node("gpu" + std::to_string(i)),
                            .group = i,
                            .memory_free = Bytes(80'000'000'000),
                            .may_serve = true});
    if (i == 0) {
      builder.holds(worker, {BlockId(0U), blocks});
    } else {
      builder.wants(worker, {BlockId(0U), blocks});
    }
  }
  return std::move(builder).build();
}

Path path_between(const Topology& topology, const Demand& demand, WorkerId parent, WorkerId child,
                  std::uint32_t stream) {
  const auto nic = [&](WorkerId worker) {
    const std::string& name = topology.node(demand.workers[worker.index()].node).name;
    return topology.find_node("nic" + name.substr(3));
  };
  return {nic(parent), nic(child), stream};
}

Stripe make_stripe(const Topology& topology, const Demand& demand, BlockSelection blocks,
                   const std::vector<std::uint32_t>& parents, std::uint32_t window) {
  Stripe stripe{ClassId(0U), blocks, {}};
  for (std::uint32_t i = 0; i < parents.size(); ++i) {
    const WorkerId child(i + 1);
    const WorkerId parent(parents[i]);
    stripe.edges.push_back(
        {child, parent, {}, path_between(topology, demand, parent, child), window});
  }
  return stripe;
}

Plan make_plan(const Topology& topology, const Demand& demand, std::vector<Stripe> stripes) {
  Plan plan;
  plan.topology = topology.hash();
  plan.demand = hash_of(demand);
  plan.stripes = std::move(stripes);
  return plan;
}

Plan tree_plan(const Topology& topology, const Demand& demand,
               const std::vector<std::uint32_t>& parents, std::uint32_t window) {
  const std::uint32_t blocks = block_count(demand.classes[0]);
  return make_plan(topology, demand,
                   {make_stripe(topology, demand, {0, 1, blocks}, parents, window)});
}

Plan two_tree_plan(const Topology& topology, const Demand& demand, std::uint32_t window) {
  const std::uint32_t blocks = block_count(demand.classes[0]);
  const auto receivers = static_cast<std::uint32_t>(demand.workers.size() - 1);
  std::vector<Stripe> stripes;
  for (std::uint32_t side = 0; side < 2; ++side) {
    std::vector<std::uint32_t> parents =
        two_tree_parents(receivers, side == 0 ? TreeSide::First : TreeSide::Second);
    parents.erase(parents.begin());
    stripes.push_back(make_stripe(topology, demand, {side, 2, blocks}, parents, window));
  }
  return make_plan(topology, demand, std::move(stripes));
}

std::vector<std::uint32_t> chain_parents(std::uint32_t receivers) {
  std::vector<std::uint32_t> parents;
  for (std::uint32_t i = 0; i < receivers; ++i) parents.push_back(i);
  return parents;
}

}  // namespace holdfast::sim::testing
