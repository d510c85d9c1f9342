#include "core/io/scenario_members.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {

std::vector<Seat> seats_of(const Scenario& scenario, const Topology& topology) {
  std::vector<Seat> seats;
  if (!scenario.workload || !scenario.workload->members) return seats;
  for (const NamedGroup& named : scenario.workload->rollouts) {
    const ScenarioGroup& group = scenario.groups[named.group];
    if (group.reliability != Reliability::Spot) continue;
    std::uint32_t number = 0;
    for (std::vector<NodeId>& workers :
         replicas_of(group, scenario.layouts[group.layout], topology)) {
      seats.push_back({named.group, number++, std::move(workers)});
    }
  }
  return seats;
}

std::vector<MemberEvent> members_of(const LoadedScenario& loaded, const std::vector<Seat>& seats,
                                    Time horizon, std::uint64_t seed) {
  if (!loaded.scenario.workload || !loaded.scenario.workload->members) return {};
  const ScenarioMembers& members = *loaded.scenario.workload->members;
  if (members.process) {
    return spot_events(*members.process, static_cast<std::uint32_t>(seats.size()), horizon, seed);
  }
  std::vector<std::vector<NodeId>> nodes;
  for (const Seat& seat : seats) nodes.push_back(seat.workers);
  std::vector<MemberEvent> events = member_events(loaded.trace, nodes, loaded.topology);
  const auto late = [&](const MemberEvent& event) { return event.at >= horizon; };
  events.erase(std::find_if(events.begin(), events.end(), late), events.end());
  return events;
}

}  // namespace holdfast
