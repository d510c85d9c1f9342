#include "tests/sim/service_world.hpp"

#include <algorithm>

namespace holdfast::sim::testing {
namespace {

bool is_gpu(const Topology& topology, NodeId node) {
  return topology.node(node).kind == NodeKind::Gpu;
}

}  // namespace

ServiceWorld::ServiceWorld(const testing_support::ClusterShape& shape,
                           std::uint32_t blocks_per_shard, Bytes block, Bytes memory,
                           std::uint32_t slots)
    : topology(testing_support::make_cluster(shape)), router(topology), ranks_(shape.gpus) {
  auto space = std::make_shared<ModelSpace>(
      "job", "model", block, std::vector<Bytes>(std::size_t{blocks_per_shard} * ranks_, block));
  std::vector<std::vector<BlockSpan>> shards;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    shards.push_back({{BlockId(rank * blocks_per_shard), blocks_per_shard}});
  }
  space->add_layout("tp", shards);
  setup.spaces.push_back(space);
  for (std::size_t d = 0; d < topology.domains().size(); ++d) {
    const Domain& domain = topology.domain(DomainId(d));
    if (domain.level != Level::Host) continue;
    ServiceGroup group;
    group.name = domain.name;
    group.space = SpaceId(0U);
    group.trainer = setup.groups.empty();
    group.slots = slots;
    for (const NodeId node : topology.members(DomainId(d))) {
      if (is_gpu(topology, node)) group.members.push_back(node);
      if (topology.node(node).kind == NodeKind::HostMemory && memory != Bytes(0)) {
        setup.memories.push_back({node, SpaceId(0U), true, memory});
      }
    }
    setup.groups.push_back(std::move(group));
  }
}

Bytes ServiceWorld::model() const {
  Bytes sum;
  for (const Bytes bytes : setup.spaces.front()->block_bytes()) sum += bytes;
  return sum;
}

ProtocolOptions ServiceWorld::options(Time detection) const {
  ProtocolOptions options;
  options.network.driver = FlowDriver::MaxMin;
  options.network.detection = detection;
  options.coordinator.detection = std::max(detection, options.agent.heartbeat * 3);
  const DomainId rack = topology.around(setup.groups.front().members.front(), Level::Rack);
  options.coordinator_at = setup.groups.back().members.front();
  for (const ServiceGroup& group : setup.groups) {
    if (topology.around(group.members.front(), Level::Rack) == rack) {
      options.coordinator_at = group.members.front();
    }
  }
  return options;
}

FaultChange ServiceWorld::domain_dies(const std::string& name) const {
  const DomainId domain = topology.find_domain(name);
  FaultRule rule;
  switch (topology.domain(domain).level) {
    case Level::Host:
      rule.kind = FaultKind::Host;
      break;
    case Level::Rack:
      rule.kind = FaultKind::Rack;
      break;
    case Level::Pod:
      rule.kind = FaultKind::Pod;
      break;
    case Level::Datacenter:
      rule.kind = FaultKind::Datacenter;
      break;
  }
  rule.action = FaultAction::Kill;
  rule.targets = {domain.value()};
  rule.when = AtTime{Time(0)};
  return make_schedule(std::vector<FaultRule>{rule}, topology, seconds(1), 1).timed.front();
}

void Recorder::call_ended(GroupId group, GroupCall call, const CallResult& result) {
  ends[call] = {group, result, service_.now()};
  if (on_end) on_end(group, call, result);
}
void Recorder::runs_changed(GroupId group, const std::optional<Version>& version) {
  runs[group] = {version, service_.now()};
}
void Recorder::block_delivered(WorkerId receiver, BlockId block, WorkerId source) {
  ++deliveries[receiver];
  ++from[{receiver, source}];
  ++delivered;
  if (on_block) on_block(receiver, block);
  if (on_delivery) on_delivery();
}
void Recorder::planned(const Demand& /*demand*/, const Plan* plan, const std::string& problem) {
  ++plans;
  if (plan != nullptr) made.push_back(*plan);
  if (!problem.empty()) problems.push_back(problem);
}
void Recorder::fault_detected(WorkerId lost, WorkerId by) {
  losses.emplace_back(lost, by);
}

}  // namespace holdfast::sim::testing
