#include "core/io/run_figures.hpp"

#include <algorithm>

namespace holdfast {
namespace {

// Bytes of the classes that each domain of a level misses, every class once a domain.
Bytes entering(const Topology& topology, const Demand& demand, Level level) {
  // The last class that was seen to be held, or to be counted, in a domain.
  std::vector<std::size_t> mark(topology.domains().size(), demand.classes.size());
  Bytes total;
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    const BlockClass& block_class = demand.classes[c];
    const Bytes bytes = bytes_of(demand, block_class);
    const auto domain_of = [&](WorkerId worker) {
      return topology.around(demand.workers[worker.index()].node, level);
    };
    for (const WorkerId holder : block_class.holders) {
      const DomainId domain = domain_of(holder);
      if (domain.valid() && demand.workers[holder.index()].may_serve) {
        mark[domain.index()] = c;
      }
    }
    for (const WorkerId receiver : block_class.receivers) {
      const DomainId domain = domain_of(receiver);
      if (domain.valid() && mark[domain.index()] != c) {
        mark[domain.index()] = c;
        total += bytes;
      }
    }
  }
  return total;
}

}  // namespace

double GpuTime::seconds() const {
  return static_cast<double>(picoseconds) / 1e12;
}

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
  minimum.nic = entering(topology, demand, Level::Host);
  minimum.wan = entering(topology, demand, Level::Datacenter);
  return minimum;
}

}  // namespace holdfast
