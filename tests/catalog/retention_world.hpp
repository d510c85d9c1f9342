// Small clusters whose every host has a GPU and a host memory, and what their workers hold.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/catalog/holder_choice.hpp"
#include "core/topology/topology.hpp"
#include "tests/topology/small_topologies.hpp"

namespace holdfast::testing_support {

// Hosts in racks in datacenters; of host i the GPU is worker 2 i and the memory worker 2 i + 1.
inline Topology make_racks(std::uint32_t datacenters, std::uint32_t racks, std::uint32_t hosts) {
  Sketch sketch;
  const NodeId hub = sketch.node("hub", NodeKind::Switch);
  for (std::uint32_t d = 0; d < datacenters; ++d) {
    const std::string dc = "d" + std::to_string(d);
    const DomainId around = sketch.builder.add_domain(dc, Level::Datacenter);
    for (std::uint32_t r = 0; r < racks; ++r) {
      const std::string rack = dc + ".r" + std::to_string(r);
      const DomainId in_rack = sketch.builder.add_domain(rack, Level::Rack, around);
      for (std::uint32_t h = 0; h < hosts; ++h) {
        const std::string name = rack + ".h" + std::to_string(h);
        const DomainId host = sketch.host(name, in_rack);
        const NodeId gpu = sketch.node(name + ".gpu", NodeKind::Gpu, host);
        const NodeId memory = sketch.node(name + ".mem", NodeKind::HostMemory, host);
        const NodeId nic = sketch.node(name + ".nic", NodeKind::Nic, host);
        const NodeId pcie = sketch.node(name + ".pcie", NodeKind::PcieSwitch, host);
        sketch.link(gpu, pcie, LinkKind::Pcie);
        sketch.link(nic, pcie, LinkKind::Pcie);
        sketch.link(memory, pcie, LinkKind::Memory);
        sketch.link(nic, hub, LinkKind::Fabric);
      }
    }
  }
  return sketch.build();
}

struct RetentionWorld {
  RetentionWorld(std::uint32_t datacenters, std::uint32_t racks, std::uint32_t hosts)
      : topology(make_racks(datacenters, racks, hosts)), domains(topology) {
    for (std::size_t n = 0; n < topology.nodes().size(); ++n) {
      const NodeKind kind = topology.nodes()[n].kind;
      if (!is_endpoint(kind)) continue;
      RetentionWorker worker;
      worker.worker = WorkerId(workers.size());
      worker.node = NodeId(n);
      worker.host_memory = kind == NodeKind::HostMemory;
      worker.free = Bytes(worker.host_memory ? 100 : 0);
      workers.push_back(worker);
    }
  }

  static WorkerId gpu(std::uint32_t host) { return WorkerId(2 * host); }
  static WorkerId memory(std::uint32_t host) { return WorkerId(2 * host + 1); }
  RetentionWorker& at(WorkerId id) { return workers[id.index()]; }

  void holds(std::uint32_t shard, WorkerId worker, CopyState state = CopyState::Complete) {
    holdings.push_back({shard, worker, state});
  }
  Retained view() const { return {workers, shards, holdings, k, level}; }
  Safety safe() const { return safety(domains, view()); }
  HolderChoice choose() const { return choose_holders(domains, view()); }
  LeaveAnswer leave(std::vector<WorkerId> leaving,
                    const std::vector<std::uint32_t>& floor = {}) const {
    std::sort(leaving.begin(), leaving.end());
    return may_leave(domains, view(), leaving, floor);
  }

  // Orders an offload: its memory is taken and the copy runs.
  void order(const Offload& offload) {
    RetentionWorker& to = at(offload.to);
    to.free -= shards[offload.shard].bytes;
    std::erase_if(holdings, [&](const ShardHolding& h) {
      return h.shard == offload.shard && h.worker == offload.to;
    });
    holds(offload.shard, offload.to, CopyState::Offloading);
  }
  void complete_offloads() {
    for (ShardHolding& holding : holdings) {
      if (holding.state == CopyState::Offloading) holding.state = CopyState::Complete;
    }
  }

  Topology topology;
  FaultDomains domains;
  std::vector<RetentionWorker> workers;
  std::vector<RetainedShard> shards;
  std::vector<ShardHolding> holdings;
  std::uint32_t k = 2;
  Level level = Level::Host;
};

}  // namespace holdfast::testing_support
