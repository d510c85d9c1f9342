#include "core/io/run_figures.hpp"

#include <algorithm>

#include "core/io/run_detail.hpp"

namespace holdfast {

std::optional<double> Stall::fraction() const {
  if (rollout.picoseconds == 0) {
    return std::nullopt;
  }
  return static_cast<double>(bound.picoseconds) / static_cast<double>(rollout.picoseconds);
}

Stall stall_of(const ResultsContext& context, std::span<const Time> completed) {
  Stall stall;
  if (context.scenario.update.destination == Destination::Shadow) {
    return stall;
  }
  const auto& workers = context.task.demand.workers;
  const auto& replicas = context.task.replicas;
  std::vector<Time> group_completed(replicas.size());
  std::vector<std::uint64_t> gpus(replicas.size(), 0);
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const std::uint32_t group = workers[w].group;
    group_completed[group] = std::max(group_completed[group], completed[w]);
    if (context.topology.node(workers[w].node).kind == NodeKind::Gpu) {
      ++gpus[group];
    }
  }
  using Wide = GpuTime::Wide;
  for (std::size_t g = 0; g < replicas.size(); ++g) {
    if (!replicas[g].receives || replicas[g].role != Role::Rollout) {
      continue;
    }
    stall.rollout.picoseconds += Wide(group_completed[g].picoseconds()) * gpus[g];
    stall.bound.picoseconds += Wide(context.bound.by_group[g].picoseconds()) * gpus[g];
  }
  return stall;
}

PayloadBytes minimum_bytes(const Topology& topology, const Demand& demand) {
  PayloadBytes minimum;
  for (const Bytes missing : missing_bytes(demand)) {
    minimum.gpu += missing;
  }
  const MinimumCrossings crossings = minimum_crossings(topology, demand);
  for (std::size_t i = 0; i < topology.domains().size(); ++i) {
    if (topology.domains()[i].level == Level::Host) minimum.nic += crossings.in[i];
    if (topology.domains()[i].level == Level::Datacenter) minimum.wan += crossings.in[i];
  }
  return minimum;
}

}  // namespace holdfast
