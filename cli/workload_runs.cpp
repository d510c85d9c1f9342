#include "cli/workload_runs.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/table.hpp"
#include "cli/workload_inputs.hpp"
#include "core/io/printable.hpp"
#include "core/io/workload_figures.hpp"
#include "core/workload/stalls.hpp"
#include "core/workload/updates.hpp"
#include "sim/greedy_service.hpp"
#include "sim/nccl_service.hpp"
#include "sim/store_service.hpp"

namespace holdfast::cli {
namespace {

sim::ProtocolOptions protocol_options(const Task& task, Policy policy, std::uint64_t seed,
                                      const sim::WorkloadRun& run) {
  const Scenario& scenario = task.loaded.scenario;
  constexpr std::size_t kSingleBinAbove = 1'024;
  sim::ProtocolOptions options;
  options.coordinator = task.deployment->coordinator;
  options.agent = task.deployment->agent;
  options.policy = policy;
  options.plan = {seed, scenario.options.objective, scenario.baselines.nccl.algorithm};
  options.planning_time = scenario.protocol.planning_time;
  options.coordinator_at = coordinator_host(task.loaded.topology, *task.deployment, run.rules);
  options.network.detection = scenario.protocol.detection.link;
  options.network.jitter = {scenario.options.jitter, seed};
  options.meters.single_bin_inside_hosts = task.deployment->roster.size() > kSingleBinAbove;
  options.meters.expected = task.bound.time();
  if (run.generation) options.meters.expected += run.generation->step_time * run.generation->steps;
  return options;
}

// Where policy `store` keeps the versions: as the scenario says, or in the trainers' hosts.
std::vector<NodeId> store_hosts(const Task& task) {
  const StoreBaseline& store = task.loaded.scenario.baselines.store;
  if (store.bandwidth) {
    throw Error(ErrorCode::Unsupported,
                "'bandwidth' of a store is not simulated: its hosts send what their links carry; "
                "leave it away, or use 'other_traffic'",
                store.place.value_or(Place{}));
  }
  const Topology& topology = task.loaded.topology;
  ScenarioGroup where;
  where.placement.on = PlacedOn::HostMemory;
  where.name.text = "baselines.store";
  for (const PlacedPattern& placed : store.hosts) {
    where.placement.patterns.push_back(placed.pattern);
    where.placement.pattern_places.push_back(placed.place);
    where.placement.place = placed.place;
  }
  if (!store.hosts.empty()) return endpoints_of(where, topology).nodes;
  std::vector<char> trains(topology.domains().size(), 0);
  for (const DeployedGroup& group : task.deployment->groups) {
    if (!group.publishes) continue;
    for (const NodeId node : group.members) {
      trains[topology.around(node, Level::Host).index()] = 1;
    }
  }
  std::vector<NodeId> hosts;
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    const Node& node = topology.nodes()[i];
    if (node.kind != NodeKind::HostMemory || !node.up) continue;
    if (trains[topology.around(NodeId(i), Level::Host).index()] != 0) hosts.emplace_back(i);
  }
  return hosts;
}

sim::MakeService maker_of(const Task& task, Policy policy, const sim::ServiceSetup& setup,
                          const sim::ProtocolOptions& options) {
  using Service = std::unique_ptr<sim::WeightService>;
  const Scenario& scenario = task.loaded.scenario;
  const ScenarioBaselines& baselines = scenario.baselines;
  const sim::DirectOptions direct{options.network, options.meters, scenario.verify};
  switch (policy) {
    case Policy::Greedy: {
      const sim::GreedyOptions greedy{direct, scenario.options.reader_cap, options.coordinator_at};
      return [&task, &setup, greedy]() -> Service {
        return std::make_unique<sim::GreedyService>(task.router, setup, greedy);
      };
    }
    case Policy::Nccl: {
      const auto shape = baselines.nccl.algorithm == NcclAlgorithm::Ring
                             ? sim::BroadcastShape::Ring
                             : sim::BroadcastShape::Tree;
      const sim::NcclOptions nccl{direct, baselines.nccl.init_time, shape};
      return [&task, &setup, nccl]() -> Service {
        return std::make_unique<sim::NcclService>(task.router, setup, nccl);
      };
    }
    case Policy::Ucx:
      return [&task, &setup, options, connect = baselines.ucx.connect_time] {
        return sim::make_ucx_service(task.router, setup, options, connect);
      };
    case Policy::Store: {
      const sim::StoreOptions store{options, store_hosts(task), baselines.store.put_time,
                                    baselines.store.get_time};
      return [&task, &setup, store] { return sim::make_store_service(task.router, setup, store); };
    }
    default:
      return [&task, &setup, options]() -> Service {
        return std::make_unique<sim::ProtocolService>(task.router, setup, options);
      };
  }
}

// What other systems do not have: staging in host memory. Greedy reads one piece at a time, so that
// one host's memory would get a single stream over the WAN; it does better without.
void leave_out_staging(sim::WorkloadRun& run) {
  for (sim::WorkloadGroup& group : run.groups) {
    group.stages.clear();
    if (group.plays == sim::Plays::Staging) group.from_start = false;
  }
}

RunEventKind kind_of(sim::WorkloadEventKind kind) {
  switch (kind) {
    case sim::WorkloadEventKind::Start:
      return RunEventKind::Start;
    case sim::WorkloadEventKind::Progress:
      return RunEventKind::Progress;
    case sim::WorkloadEventKind::BlockDone:
      return RunEventKind::BlockDone;
    case sim::WorkloadEventKind::End:
      return RunEventKind::End;
    case sim::WorkloadEventKind::Call:
      return RunEventKind::CallDone;
    case sim::WorkloadEventKind::Runs:
      return RunEventKind::Runs;
    case sim::WorkloadEventKind::Fault:
      break;
  }
  return RunEventKind::Fault;
}

// Workers of host memory that keeps copies are not among those of the results.
void take_events(const Task& task, std::vector<sim::WorkloadEvent>& events, RunRecord& record) {
  const std::size_t workers = task.update.demand.workers.size();
  record.events.reserve(events.size());
  for (sim::WorkloadEvent& event : events) {
    if (event.worker.valid() && event.worker.index() >= workers) continue;
    const bool known = event.source.valid() && event.source.index() < workers;
    record.events.push_back({event.at, kind_of(event.kind), event.worker, event.percent, StripeId(),
                             event.block, known ? event.source : WorkerId(),
                             std::move(event.text)});
  }
}

void take(const Task& task, sim::WorkloadOutcome&& outcome, RunRecord& record) {
  WorkloadRecord workload;
  workload.groups = std::move(outcome.groups);
  workload.fetches = std::move(outcome.fetches);
  workload.length = outcome.length;
  workload.versions = outcome.versions;
  workload.finished = outcome.finished;
  workload.stale = outcome.stale;
  workload.lost = outcome.lost;
  workload.plans = std::move(outcome.plans);
  for (sim::WorkloadFailure& failure : outcome.failures) {
    workload.failures.push_back({failure.at, std::move(failure.kind), std::move(failure.who),
                                 failure.detected_after, std::move(failure.consequence)});
  }
  std::vector<HeldVersion> held;
  for (const sim::Held& hold : outcome.held) {
    held.push_back({hold.group.value(), hold.version, hold.from, hold.to});
  }
  record.minimum =
      add_bounds(*task.deployment, task.loaded.topology,
                 task.loaded.scenario.options.serve_from_spot, held, outcome.memory_from, workload);
  if (outcome.driver == sim::FlowDriver::MaxMin) record.backend = "max_min";
  record.makespan = outcome.length;
  record.moved = {outcome.moved.gpu, outcome.moved.nic, outcome.moved.wan};
  record.deliveries = outcome.deliveries;
  record.stripes = outcome.stripes;
  record.edges = outcome.edges;
  record.failure = std::move(outcome.failure);
  if (!workload.plans.empty()) record.plan = workload.plans.front();
  for (sim::ChannelUse& use : outcome.channels) {
    record.links.push_back({use.channel, std::move(use.bins)});
  }
  take_events(task, outcome.events, record);
  record.workload = std::move(workload);
}

// One that comes again and again, a flapping link, is told once.
struct FailureLine {
  const FailureRecord* first = nullptr;
  std::size_t count = 0;
};

std::vector<FailureLine> lines_of(const std::vector<FailureRecord>& failures) {
  std::vector<FailureLine> lines;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  for (const FailureRecord& failure : failures) {
    const auto [at, fresh] =
        known.emplace(std::tuple(failure.kind, failure.who, failure.consequence), lines.size());
    if (fresh) lines.push_back({&failure, 0});
    ++lines[at->second].count;
  }
  return lines;
}

// Lines after the first stand deeper.
std::string indented(const std::string& lines) {
  std::string text = "  ";
  for (const char c : lines) {
    text += c;
    if (c == '\n') text += "      ";
  }
  return text + "\n";
}

std::string gpu_seconds(const GpuTime& time) {
  return fmt::format("{:.0f}", time.seconds());
}

}  // namespace

std::vector<std::string> check_workload(const Task& task, std::uint64_t seed) {
  std::vector<std::string> warnings;
  (void)run_of(task.loaded, *task.deployment, seed, warnings);
  const auto& policies = task.policies;
  if (std::find(policies.begin(), policies.end(), Policy::Store) != policies.end()) {
    (void)store_hosts(task);
  }
  return warnings;
}

void carry_out_workload(const Task& task, Policy policy, sim::Trace trace,
                        const std::function<void(double)>& progress, RunRecord& record) {
  std::vector<std::string> warnings;  // check_workload has said them
  const sim::ServiceSetup setup = setup_of(*task.deployment);
  sim::WorkloadRun run = run_of(task.loaded, *task.deployment, record.seed, warnings);
  run.trace = trace;
  if (is_baseline(policy) || is_online(policy)) leave_out_staging(run);
  const sim::ProtocolOptions options = protocol_options(task, policy, record.seed, run);
  take(task,
       sim::simulate_workload(task.loaded.topology, setup, run,
                              maker_of(task, policy, setup, options), progress),
       record);
}

std::string workload_heading(const Task& task) {
  const Scenario& scenario = task.loaded.scenario;
  std::size_t trainers = 0;
  std::size_t staging = 0;
  for (const DeployedGroup& group : task.deployment->groups) {
    trainers += group.publishes ? 1 : 0;
    staging += group.fetches && group.host_memory ? 1 : 0;
  }
  const std::size_t rollouts = task.deployment->groups.size() - trainers - staging;
  std::string text = printable(scenario.name) + "\n";
  if (!scenario.teaches.empty()) text += wrapped(scenario.teaches) + "\n";
  text += "\n";
  std::string what = "one update";
  if (scenario.workload) {
    what = fmt::format("{} rollouts, {} loop of {} steps", to_string(scenario.workload->kind),
                       to_string(scenario.workload->loop), scenario.workload->steps);
  }
  text +=
      wrapped(fmt::format("{} of {} on {}: {} replicas publish, {} fetch{}; {}; verification {}.",
                          rounded(task.update.model_bytes), task.update.demand.model,
                          task.loaded.topology.name(), trainers, rollouts,
                          staging > 0 ? fmt::format(" and {} stage in host memory", staging) : "",
                          what, scenario.verify ? "on" : "off")) +
      "\n";
  text += wrapped("The largest update: " + describe_bound(task)) + "\n\n";
  return text;
}

std::string workload_table(std::span<const RunRecord> runs) {
  using Align = Table::Align;
  const std::vector<Table::Column> columns = {{"policy", Align::Left},
                                              {"updates"},
                                              {"makespan"},
                                              {"share"},
                                              {"rollout"},
                                              {"trainer"},
                                              {"offload"},
                                              {"stall"},
                                              {"WAN"},
                                              {"least"},
                                              {"fails"},
                                              {"ran in"}};
  Table table(columns);
  std::string lengths;
  for (const RunRecord& run : runs) {
    std::vector<std::string> row = {run.policy};
    if (!run.workload) {
      row.emplace_back("failed");
      row.resize(columns.size());
      table.add(std::move(row));
      continue;
    }
    const WorkloadRecord& workload = *run.workload;
    std::vector<Time> faults;
    for (const FailureRecord& failure : workload.failures) faults.push_back(failure.at);
    const auto updates = updates_of(workload.fetches, workload.joint, faults);
    const UpdateSums sums = sums_of(updates);
    const StallParts stall = stall_parts(workload.groups);
    row.push_back(fmt::format("{}", updates.size()));
    row.push_back(rounded(sums.makespan));
    row.push_back(percent(sums.fraction()));
    row.push_back(gpu_seconds(stall.rollout));
    row.push_back(gpu_seconds(stall.trainer));
    row.push_back(gpu_seconds(stall.offload));
    row.push_back(percent(fetch_stall(workload.fetches).fraction()));
    row.push_back(rounded(run.moved.wan));
    row.push_back(rounded(run.minimum->wan));
    row.push_back(fmt::format("{}", workload.failures.size() + (run.failure ? 1 : 0)));
    row.push_back(fmt::format("{:.1f} s", run.wall_s));
    table.add(std::move(row));
    lengths += fmt::format("\n{}: {} versions, {} rollouts ({} too old, {} lost) in {}.",
                           run.policy, workload.versions, workload.finished, workload.stale,
                           workload.lost, rounded(workload.length));
  }
  return table.text() +
         "Makespans are added up over the updates; share: their bounds over them; stall: the same "
         "of\n"
         "the waits of GPUs. Stalls of rollouts, trainers and offloads are in GPU-seconds. WAN "
         "and\n"
         "least: bytes that crossed it, and that must.\n" +
         lengths + "\n";
}

std::string failures_text(std::span<const RunRecord> runs) {
  constexpr std::size_t kMostLines = 12;
  constexpr std::size_t kWidth = 94;
  std::string text;
  for (const RunRecord& run : runs) {
    if (!run.workload || run.workload->failures.empty()) continue;
    const std::vector<FailureLine> lines = lines_of(run.workload->failures);
    text += fmt::format("\nFailures with {}:\n", run.policy);
    for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
      const FailureRecord& failure = *lines[i].first;
      const std::string noticed =
          failure.detected_after
              ? fmt::format(", noticed {} later", rounded(*failure.detected_after))
              : "";
      const std::string times =
          lines[i].count > 1 ? fmt::format(" ({} times)", lines[i].count) : "";
      const std::string line =
          printable(fmt::format("{}  {} {}{}: {}{}", rounded(failure.at), failure.kind, failure.who,
                                noticed, failure.consequence, times));
      text += indented(wrapped(line, kWidth));
    }
    if (lines.size() > kMostLines) {
      text += fmt::format("  and {} more, in summary.json\n", lines.size() - kMostLines);
    }
  }
  return text;
}

}  // namespace holdfast::cli
