#include "cli/workload_inputs.hpp"

#include <algorithm>
#include <cmath>

#include "core/io/scenario_members.hpp"

namespace holdfast::cli {
namespace {

sim::Plays plays_of(const DeployedGroup& group) {
  if (group.publishes) return sim::Plays::Trainer;
  return group.host_memory ? sim::Plays::Staging : sim::Plays::Rollout;
}

// Staging in the datacenter of a rollout, or anywhere if the topology has none.
std::vector<GroupId> stages_of(const DeployedGroup& rollout, const Deployment& deployment,
                               const Topology& topology) {
  std::vector<GroupId> stages;
  const DomainId here = topology.around(rollout.members.front(), Level::Datacenter);
  for (std::size_t g = 0; g < deployment.groups.size(); ++g) {
    const DeployedGroup& stage = deployment.groups[g];
    if (!stage.host_memory || !stage.fetches) continue;
    if (topology.around(stage.members.front(), Level::Datacenter) == here) stages.emplace_back(g);
  }
  return stages;
}

sim::Generation generation_of(const ScenarioWorkload& workload) {
  sim::Generation loop;
  loop.synchronous = workload.loop == TrainingLoop::Synchronous;
  loop.batch = workload.batch;
  loop.lengths = workload.lengths;
  loop.token_time = workload.token_time;
  loop.slots = workload.slots;
  loop.partial = workload.partial_rollouts;
  loop.staleness = workload.staleness;
  loop.steps = workload.steps;
  loop.step_time = workload.step_time;
  loop.write_time = workload.write_time;
  return loop;
}

// Far beyond what the run takes if it goes well.
Time horizon_of(const ScenarioWorkload& workload, std::size_t replicas) {
  constexpr double kPatience = 20;
  constexpr double kMost = 1e6;  // seconds
  const double tokens = std::min(workload.lengths.mean(), workload.lengths.quantile(0.999));
  const double rounds = std::ceil(static_cast<double>(workload.batch) /
                                  (static_cast<double>(workload.slots) *
                                   static_cast<double>(std::max<std::size_t>(replicas, 1))));
  const double batch = rounds * tokens * workload.token_time.seconds();
  const double steps = static_cast<double>(workload.steps) + 1;
  const double seconds = 3600 + kPatience * steps * (workload.step_time.seconds() + batch);
  return time_from_seconds(std::min(seconds, kMost));
}

void add_members(const LoadedScenario& loaded, const Deployment& deployment, std::uint64_t seed,
                 sim::WorkloadRun& run) {
  const std::vector<Seat> seats = seats_of(loaded.scenario, loaded.topology);
  for (const Seat& seat : seats) {
    const auto at = std::find_if(
        deployment.groups.begin(), deployment.groups.end(), [&](const DeployedGroup& group) {
          return group.scenario == seat.group && group.replica == seat.replica;
        });
    const GroupId group(static_cast<std::size_t>(at - deployment.groups.begin()));
    run.seats.push_back(group);
    run.groups[group.index()].from_start = false;
  }
  run.members = members_of(loaded, seats, run.horizon, seed);
}

}  // namespace

sim::ServiceSetup setup_of(const Deployment& deployment) {
  sim::ServiceSetup setup;
  setup.spaces.push_back(deployment.space);
  for (const DeployedGroup& group : deployment.groups) {
    setup.groups.push_back({group.name, SpaceId(0U), group.layout, group.members, group.publishes,
                            group.reliable, group.slots});
  }
  for (const DeployedMemory& memory : deployment.memories) {
    setup.memories.push_back({memory.node, SpaceId(0U), true, memory.budget});
  }
  return setup;
}

sim::WorkloadRun run_of(const LoadedScenario& loaded, const Deployment& deployment,
                        std::uint64_t seed, std::vector<std::string>& warnings) {
  const Scenario& scenario = loaded.scenario;
  sim::WorkloadRun run;
  std::size_t rollouts = 0;
  for (const DeployedGroup& group : deployment.groups) {
    sim::WorkloadGroup plays;
    plays.plays = plays_of(group);
    plays.gpus = group.host_memory ? 0 : group.members.size();
    plays.destination = group.destination;
    if (plays.plays == sim::Plays::Rollout) {
      ++rollouts;
      if (scenario.workload) plays.stages = stages_of(group, deployment, loaded.topology);
    }
    run.groups.push_back(std::move(plays));
  }
  if (scenario.workload) {
    run.generation = generation_of(*scenario.workload);
    run.horizon = horizon_of(*scenario.workload, rollouts);
    add_members(loaded, deployment, seed, run);
  }
  const ScenarioProtocol& protocol = scenario.protocol;
  if (protocol.retain) {
    run.retain = {protocol.retain->copies, protocol.retain->level, protocol.retain->versions};
  }
  run.publish_deadline = protocol.deadlines.publish;
  run.unpublish_deadline = protocol.deadlines.unpublish;
  run.fetch_deadline = protocol.deadlines.fetch;
  run.retain_deadline = protocol.deadlines.retain;
  run.on_deadline = protocol.on_deadline;
  run.on_newer = protocol.on_newer;
  run.rules = rules_of(scenario.faults, loaded.topology, &warnings);
  run.faults = make_schedule(run.rules, loaded.topology, run.horizon, seed);
  run.seed = seed;
  return run;
}

NodeId coordinator_host(const Topology& topology, const Deployment& deployment,
                        const std::vector<FaultRule>& rules) {
  std::vector<char> aimed_at(topology.domains().size(), 0);
  for (const FaultRule& rule : rules) {
    const bool domains = rule.kind == FaultKind::Host || rule.kind == FaultKind::Rack ||
                         rule.kind == FaultKind::Pod || rule.kind == FaultKind::Datacenter;
    if (!domains || rule.action == FaultAction::Partition) continue;
    for (const std::uint32_t target : rule.targets) aimed_at[target] = 1;
  }
  std::vector<char> used(topology.domains().size(), 0);
  for (const NodeId node : deployment.roster) {
    used[topology.around(node, Level::Host).index()] = 1;
  }
  const NodeId trainer = deployment.roster.front();
  const auto rank = [&](NodeId node) {
    int worst = 0;  // the lower the better
    for (const Level level : {Level::Host, Level::Rack, Level::Pod, Level::Datacenter}) {
      const DomainId domain = topology.around(node, level);
      if (domain.valid() && aimed_at[domain.index()] != 0) worst += 4;
    }
    const bool near =
        topology.around(node, Level::Datacenter) == topology.around(trainer, Level::Datacenter);
    return worst + (near ? 0 : 2) + int{used[topology.around(node, Level::Host).index()]};
  };
  NodeId best = trainer;
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    const Node& node = topology.nodes()[i];
    if (is_endpoint(node.kind) && node.up && rank(NodeId(i)) < rank(best)) best = NodeId(i);
  }
  return best;
}

}  // namespace holdfast::cli
