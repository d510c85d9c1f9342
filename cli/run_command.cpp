// `holdfast run`: a scenario on real workers; so far on this machine alone.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "core/io/deployment.hpp"
#include "core/io/printable.hpp"
#include "core/io/results.hpp"
#include "core/io/scenario_files.hpp"
#include "core/topology/router.hpp"
#include "real/local/local_run.hpp"
#include "real/local/local_worker.hpp"
#include "real/process_group.hpp"

namespace holdfast::cli {
namespace {

// More processes than this do not help anybody on one machine.
constexpr std::size_t kMostLocalWorkers = 64;

Error unsupported(const std::string& message, const Place& place) {
  return {ErrorCode::Unsupported, message, place};
}

void refuse_what_is_not_local(const Scenario& scenario, const Deployment& deployment) {
  if (scenario.workload && scenario.workload->kind != WorkloadKind::Standalone) {
    throw unsupported("'run --local' carries out `update` and standalone workloads only",
                      scenario.workload->place);
  }
  if (deployment.cards.size() > kMostLocalWorkers) {
    throw unsupported(fmt::format("{} workers on one machine; 'run --local' starts at most {}: "
                                  "simulate it, or take a smaller scenario",
                                  deployment.cards.size(), kMostLocalWorkers),
                      Place{scenario.file, 0, 0, {}, {}});
  }
  for (const DeployedGroup& group : deployment.groups) {
    if (group.publishes && group.fetches) {
      throw unsupported("a group that both holds and receives cannot run locally yet",
                        Place{scenario.file, 0, 0, {}, {}});
    }
  }
}

// Faults that a local run knows: one worker is killed for good within a transfer.
std::vector<real::LocalKill> kills_of(const LoadedScenario& loaded, const Deployment& deployment) {
  std::vector<real::LocalKill> kills;
  const std::vector<FaultRule> rules = rules_of(loaded.scenario.faults, loaded.topology);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const FaultRule& rule = rules[i];
    const auto* when = std::get_if<AtTransfer>(&rule.when);
    if (rule.kind != FaultKind::Worker || rule.action != FaultAction::Kill || rule.duration ||
        when == nullptr) {
      throw unsupported(
          "'run --local' knows one fault: {kind: worker, action: kill, at_transfer: 50%} without "
          "restart_after",
          loaded.scenario.faults[i].place);
    }
    for (const std::uint32_t target : rule.targets) {
      const auto at = std::find(deployment.roster.begin(), deployment.roster.end(), NodeId(target));
      if (at == deployment.roster.end()) continue;
      kills.push_back({WorkerId(static_cast<std::size_t>(at - deployment.roster.begin())),
                       when->update, when->share});
    }
  }
  return kills;
}

std::string name_of(const Deployment& deployment, const Topology& topology, WorkerId worker) {
  return fmt::format("'{}'", topology.node(deployment.roster[worker.index()]).name);
}

nlohmann::ordered_json json_of(const LoadedScenario& loaded, const Deployment& deployment,
                               const RunArguments& arguments, Policy policy,
                               const real::LocalRunResult& result) {
  using json = nlohmann::ordered_json;
  json root;
  root["scenario"] = loaded.scenario.name;
  root["backend"] = arguments.transport;
  root["policy"] = to_string(policy);
  root["workers"] = deployment.cards.size();
  root["plans"] = json::array();
  for (const Hash128& plan : result.plans) root["plans"].push_back(to_string(plan));
  root["updates"] = json::array();
  for (std::size_t i = 0; i < result.update_times.size(); ++i) {
    const auto found = result.deliveries.find(static_cast<std::uint32_t>(i + 1));
    json update;
    update["version"] = fmt::format("1.{}", i + 1);
    update["makespan_s"] = exact_seconds(result.update_times[i]);
    update["deliveries"] = found == result.deliveries.end() ? 0 : found->second.size();
    root["updates"].push_back(update);
  }
  root["repeated_blocks"] = result.repeated;
  root["verified"] = result.verified;
  root["killed"] = json::array();
  for (const WorkerId worker : result.killed) {
    root["killed"].push_back(loaded.topology.node(deployment.roster[worker.index()]).name);
  }
  root["events"] = json::array();
  for (const real::LocalEvent& event : result.events) {
    root["events"].push_back(
        {{"worker", loaded.topology.node(deployment.roster[event.worker.index()]).name},
         {"event", event.kind},
         {"message", event.text}});
  }
  if (arguments.deliveries) {
    root["deliveries"] = json::array();
    for (const auto& [update, deliveries] : result.deliveries) {
      for (const auto& [receiver, block, source] : deliveries) {
        root["deliveries"].push_back(
            {update, loaded.topology.node(deployment.roster[receiver.index()]).name, block.value(),
             loaded.topology.node(deployment.roster[source.index()]).name});
      }
    }
  }
  root["failure"] = result.failure ? json(*result.failure) : json(nullptr);
  return root;
}

void print_table(const Deployment& deployment, const real::LocalRunResult& result) {
  using Align = Table::Align;
  Table table({{"version", Align::Left}, {"fetched in"}, {"per worker"}, {"blocks"}});
  Bytes most;
  for (const DeployedGroup& group : deployment.groups) {
    if (!group.fetches) continue;
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      most = std::max(most, deployment.space->bytes({group.layout, rank}));
    }
  }
  for (std::size_t i = 0; i < result.update_times.size(); ++i) {
    const double s = exact_seconds(result.update_times[i]);
    const auto found = result.deliveries.find(static_cast<std::uint32_t>(i + 1));
    table.add({fmt::format("1.{}", i + 1), rounded(result.update_times[i]),
               rounded(Rate(static_cast<std::uint64_t>(static_cast<double>(most.count()) / s))),
               std::to_string(found == result.deliveries.end() ? 0 : found->second.size())});
  }
  print(table.text());
  print(fmt::format("{} replicas verified byte by byte; {} blocks came twice\n",
                    result.verified.size(), result.repeated));
}

}  // namespace

ExitStatus run_scenario(const RunArguments& arguments) {
  if (!arguments.local) {
    throw Error(ErrorCode::Unsupported,
                "running on other machines is not there yet; write --local for this one",
                Place{"run", 0, 0, {}, {}});
  }
  const LoadedScenario loaded = load_scenario(arguments.scenario);
  const Deployment deployment = make_deployment(loaded.scenario, loaded.topology, loaded.manifest);
  refuse_what_is_not_local(loaded.scenario, deployment);
  print_warnings(deployment.warnings);
  const std::vector<Policy> policies = chosen_policies(arguments.policy, loaded.scenario);
  if (policies.size() != 1 || is_online(policies.front())) {
    throw Error(ErrorCode::BadValue, "a real run takes one policy that makes a plan: --policy auto",
                Place{"--policy", 0, 0, {}, {}});
  }
  real::LocalRunSetup setup;
  setup.topology = &loaded.topology;
  setup.roster = deployment.roster;
  setup.space = deployment.space;
  setup.cards = deployment.cards;
  for (std::uint32_t g = 0; g < deployment.groups.size(); ++g) {
    const DeployedGroup& group = deployment.groups[g];
    real::LocalGroup local{group.name, {}, group.publishes, group.fetches};
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      local.members.push_back(deployment.worker(GroupId(g), rank));
    }
    setup.groups.push_back(std::move(local));
  }
  setup.coordinator = deployment.coordinator;
  setup.policy = policies.front();
  setup.plan.objective = loaded.scenario.options.objective;
  // A training run begins with a version that is there already, and each step ends with one more.
  setup.updates = loaded.scenario.workload ? loaded.scenario.workload->steps + 1 : 1;
  setup.kills = kills_of(loaded, deployment);
  setup.worker_arguments = {"local-worker", arguments.scenario, "WORKER", "COORDINATOR"};
  if (!arguments.json) {
    print(
        fmt::format("{}: {} workers as processes of this machine, {} between them, {} a replica\n",
                    printable(loaded.scenario.name), deployment.cards.size(), arguments.transport,
                    rounded(loaded.manifest.total())));
    setup.progress = [](const std::string& line) { print(line + "\n"); };
  }
  const real::LocalRunResult result = real::run_local(setup);
  if (arguments.json) {
    print(json_of(loaded, deployment, arguments, setup.policy, result).dump(2) + "\n");
  } else {
    print_table(deployment, result);
    for (const WorkerId worker : result.killed) {
      print(fmt::format("killed on the way: {}\n", name_of(deployment, loaded.topology, worker)));
    }
  }
  if (result.failure) print_error(*result.failure);
  return result.failure ? ExitStatus::Failed : ExitStatus::Done;
}

ExitStatus local_worker(const LocalWorkerArguments& arguments) {
  const LoadedScenario loaded = load_scenario(arguments.scenario);
  const Deployment deployment = make_deployment(loaded.scenario, loaded.topology, loaded.manifest);
  if (arguments.worker >= deployment.cards.size()) {
    throw Error(ErrorCode::BadValue, "there is no such worker in the scenario",
                Place{"WORKER", 0, 0, {}, {}});
  }
  const Router router(loaded.topology);
  const real::LocalWorkerSetup setup{WorkerId(arguments.worker),
                                     deployment.cards[arguments.worker],
                                     deployment.space,
                                     loaded.manifest,
                                     deployment.map,
                                     router,
                                     deployment.agent,
                                     arguments.coordinator,
                                     real::ProcessGroup::kFirstDescriptor,
                                     loaded.scenario.verify};
  return real::run_local_worker(setup) == 0 ? ExitStatus::Done : ExitStatus::Failed;
}

}  // namespace holdfast::cli
