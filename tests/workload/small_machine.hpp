// Two datacenters with two racks of two hosts each; a host has two GPUs, a memory and a NIC.
#pragma once

#include <string>
#include <vector>

#include "core/topology/topology.hpp"
#include "core/workload/faults.hpp"

namespace holdfast::small_machine {

inline void add_host(TopologyBuilder& builder, const std::string& host, DomainId rack,
                     NodeId leaf) {
  const Rate rate(1'000'000'000);
  const auto join = [&](const std::string& name, NodeId a, NodeId b, LinkKind kind) {
    builder.add_link({name, a, b, kind, rate, microseconds(1), {}, true});
  };
  const DomainId domain = builder.add_domain(host, Level::Host, rack);
  const NodeId bus = builder.add_node({host + ".bus", NodeKind::PcieSwitch, domain, {}, {}, true});
  for (const char* gpu : {".gpu0", ".gpu1"}) {
    join(host + gpu + ".link", bus,
         builder.add_node({host + gpu, NodeKind::Gpu, domain, Bytes(1 << 24), rate, true}),
         LinkKind::Pcie);
  }
  join(
      host + ".mem.link", bus,
      builder.add_node({host + ".mem", NodeKind::HostMemory, domain, Bytes(1U << 30U), rate, true}),
      LinkKind::Memory);
  const NodeId nic = builder.add_node({host + ".nic", NodeKind::Nic, domain, {}, {}, true});
  join(host + ".nic.link", bus, nic, LinkKind::Pcie);
  join(host + ".uplink", nic, leaf, LinkKind::Fabric);
}

inline Topology topology() {
  TopologyBuilder builder("small");
  const Rate rate(1'000'000'000);
  std::vector<NodeId> gateways;
  for (const std::string dc : {"dc0", "dc1"}) {
    const DomainId center = builder.add_domain(dc, Level::Datacenter);
    const NodeId core = builder.add_node({dc + ".core", NodeKind::Spine, center, {}, {}, true});
    gateways.push_back(builder.add_node({dc + ".gw", NodeKind::Gateway, center, {}, {}, true}));
    builder.add_link({dc + ".gw.link",
                      core,
                      gateways.back(),
                      LinkKind::Fabric,
                      rate,
                      microseconds(1),
                      {},
                      true});
    for (const std::string r : {"r0", "r1"}) {
      const DomainId rack = builder.add_domain(dc + "." + r, Level::Rack, center);
      const NodeId leaf =
          builder.add_node({dc + "." + r + ".leaf", NodeKind::Switch, rack, {}, {}, true});
      builder.add_link(
          {dc + "." + r + ".trunk", leaf, core, LinkKind::Fabric, rate, microseconds(1), {}, true});
      add_host(builder, dc + "." + r + ".h0", rack, leaf);
      add_host(builder, dc + "." + r + ".h1", rack, leaf);
    }
  }
  builder.add_link(
      {"wan", gateways[0], gateways[1], LinkKind::Wan, rate, milliseconds(10), {}, true});
  return builder.build();
}

// Everything of that kind.
inline std::vector<std::uint32_t> targets_of(FaultKind kind) {
  const Topology machine = topology();
  std::vector<std::uint32_t> ids;
  const auto add = [&](const auto& things, const auto& wanted) {
    for (std::size_t i = 0; i < things.size(); ++i) {
      if (wanted(things[i])) ids.push_back(static_cast<std::uint32_t>(i));
    }
  };
  const auto level = [&](Level at) {
    add(machine.domains(), [at](const Domain& domain) { return domain.level == at; });
  };
  switch (kind) {
    case FaultKind::Worker:
      add(machine.nodes(), [](const Node& node) { return is_endpoint(node.kind); });
      break;
    case FaultKind::Nic:
      add(machine.nodes(), [](const Node& node) { return node.kind == NodeKind::Nic; });
      break;
    case FaultKind::Link:
      add(machine.links(), [](const Link&) { return true; });
      break;
    case FaultKind::Host:
      level(Level::Host);
      break;
    case FaultKind::Rack:
      level(Level::Rack);
      break;
    case FaultKind::Pod:
      level(Level::Pod);
      break;
    case FaultKind::Datacenter:
      level(Level::Datacenter);
      break;
    case FaultKind::Coordinator:
      break;
  }
  return ids;
}

}  // namespace holdfast::small_machine
