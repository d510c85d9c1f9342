#include <algorithm>

#include "core/io/run_detail.hpp"
#include "core/io/run_figures.hpp"

namespace holdfast {
namespace {

// "near" of "near[3]": replicas are named after their group.
std::string group_of(const std::string& replica) {
  return replica.substr(0, replica.rfind('['));
}

}  // namespace

std::vector<GroupWait> waits_of(const ResultsContext& context, std::span<const Time> completed) {
  std::vector<GroupWait> waits;
  if (context.scenario.update.destination == Destination::Shadow) return waits;
  const auto& workers = context.task.demand.workers;
  const auto& replicas = context.task.replicas;
  std::vector<Time> complete(replicas.size());
  std::vector<std::uint64_t> gpus(replicas.size(), 0);
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const std::uint32_t replica = workers[w].group;
    complete[replica] = std::max(complete[replica], completed[w]);
    if (context.topology.node(workers[w].node).kind == NodeKind::Gpu) ++gpus[replica];
  }
  std::vector<GpuTime> excess;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    if (!replicas[r].receives || replicas[r].role != Role::Rollout || gpus[r] == 0) continue;
    const std::string group = group_of(replicas[r].name);
    const Time bound = context.bound.by_group[r];
    auto wait = std::find_if(waits.begin(), waits.end(),
                             [&](const GroupWait& other) { return other.group == group; });
    if (wait == waits.end()) {
      wait = waits.insert(wait, GroupWait{group, to_string(replicas[r].role), 0, 0, complete[r],
                                          complete[r], bound, bound, 0});
      excess.emplace_back();
    }
    ++wait->replicas;
    wait->gpus += gpus[r];
    wait->fastest = std::min(wait->fastest, complete[r]);
    wait->slowest = std::max(wait->slowest, complete[r]);
    wait->least_bound = std::min(wait->least_bound, bound);
    wait->most_bound = std::max(wait->most_bound, bound);
    // Jitter may beat a bound by luck.
    const Time beyond = complete[r] - std::min(complete[r], bound);
    excess[static_cast<std::size_t>(wait - waits.begin())].picoseconds +=
        GpuTime::Wide(beyond.picoseconds()) * gpus[r];
  }
  for (std::size_t g = 0; g < waits.size(); ++g) waits[g].excess_gpu_s = excess[g].seconds();
  return waits;
}

}  // namespace holdfast
