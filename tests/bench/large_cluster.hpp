// A large cluster for benchmarks: hosts of 8 GPUs and a host memory, racks of 4 and pods of 128
// hosts, two datacenters. One switch joins all, since routes do not matter here.
#pragma once

#include <string>

#include "core/topology/topology.hpp"
#include "tests/topology/small_topologies.hpp"

namespace holdfast::bench {

inline constexpr std::uint32_t kGpus = 8;  // of a host; the host's memory comes after them

inline Topology make_topology(std::uint32_t hosts) {
  Sketch sketch;
  const NodeId hub = sketch.node("hub", NodeKind::Switch);
  DomainId datacenter;
  DomainId pod;
  DomainId rack;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const std::string number = std::to_string(h);
    if (h % (hosts / 2) == 0) {
      datacenter = sketch.builder.add_domain("dc" + number, Level::Datacenter);
    }
    if (h % 128 == 0) pod = sketch.builder.add_domain("pod" + number, Level::Pod, datacenter);
    if (h % 4 == 0) rack = sketch.builder.add_domain("rack" + number, Level::Rack, pod);
    const DomainId host = sketch.host("host" + number, rack);
    const NodeId pcie = sketch.node("pcie" + number, NodeKind::PcieSwitch, host);
    for (std::uint32_t g = 0; g < kGpus; ++g) {
      const NodeId gpu = sketch.node("gpu" + number + "." + std::to_string(g), NodeKind::Gpu, host);
      sketch.link(gpu, pcie, LinkKind::Pcie);
    }
    const NodeId memory = sketch.node("mem" + number, NodeKind::HostMemory, host);
    sketch.link(memory, pcie, LinkKind::Memory);
    const NodeId nic = sketch.node("nic" + number, NodeKind::Nic, host);
    sketch.link(nic, pcie, LinkKind::Pcie);
    sketch.link(nic, hub, LinkKind::Fabric);
  }
  return sketch.build();
}

}  // namespace holdfast::bench
