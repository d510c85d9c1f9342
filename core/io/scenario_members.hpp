// The seats of an elastic workload: places for the replicas that come and go.
#pragma once

#include <cstdint>
#include <vector>

#include "core/io/scenario_files.hpp"
#include "core/workload/membership.hpp"

namespace holdfast {

struct Seat {
  std::size_t group = 0;      // index into Scenario::groups
  std::uint32_t replica = 0;  // of that group
  std::vector<NodeId> workers;
};

// The replicas of the workload's rollout groups with `reliability: spot`, in the order of the
// groups; their index is MemberEvent::seat. Empty unless the workload is elastic.
[[nodiscard]] std::vector<Seat> seats_of(const Scenario& scenario, const Topology& topology);

// Who comes and goes below `horizon`: drawn by `seed`, or from the trace. Empty unless the workload
// is elastic. Throws Error as member_events does.
[[nodiscard]] std::vector<MemberEvent> members_of(const LoadedScenario& loaded,
                                                  const std::vector<Seat>& seats, Time horizon,
                                                  std::uint64_t seed);

}  // namespace holdfast
