#include "cli/workload_runs.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/table.hpp"
#include "cli/workload_inputs.hpp"
#include "core/io/printable.hpp"
#include "core/io/workload_figures.hpp"
#include "core/workload/stalls.hpp"
#include "core/workload/updates.hpp"
#include "sim/protocol_service.hpp"

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

sim::MakeService maker_of(const Task& task, Policy policy, const sim::ServiceSetup& setup,
                          const sim::ProtocolOptions& options) {
  if (is_online(policy) || is_baseline(policy)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("policy '{}' does not run workloads", to_string(policy)));
  }
  return [&task, &setup, options]() -> std::unique_ptr<sim::WeightService> {
    return std::make_unique<sim::ProtocolService>(task.router, setup, options);
  };
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

std::string gpu_seconds(const GpuTime& time) {
  return fmt::format("{:.0f}", time.seconds());
}

}  // namespace

void carry_out_workload(const Task& task, Policy policy, sim::Trace trace,
                        const std::function<void(double)>& progress, RunRecord& record) {
  std::vector<std::string> warnings;  // said before
  const sim::ServiceSetup setup = setup_of(*task.deployment);
  sim::WorkloadRun run = run_of(task.loaded, *task.deployment, record.seed, warnings);
  run.trace = trace;
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
  Table table({{"policy", Align::Left},
               {"length"},
               {"updates"},
               {"makespans"},
               {"bounds"},
               {"share"},
               {"rollout stall"},
               {"trainer"},
               {"offload"},
               {"stall share"},
               {"into hosts"},
               {"WAN"},
               {"least WAN"},
               {"failures"},
               {"ran in"}});
  for (const RunRecord& run : runs) {
    std::vector<std::string> row = {run.policy};
    if (!run.workload) {
      row.emplace_back("failed");
      row.resize(15);
      table.add(std::move(row));
      continue;
    }
    const WorkloadRecord& workload = *run.workload;
    std::vector<Time> faults;
    for (const FailureRecord& failure : workload.failures) faults.push_back(failure.at);
    const auto updates = updates_of(workload.fetches, workload.joint, faults);
    const UpdateSums sums = sums_of(updates);
    const StallParts stall = stall_parts(workload.groups);
    row.push_back(rounded(workload.length));
    row.push_back(fmt::format("{}", updates.size()));
    row.push_back(rounded(sums.makespan));
    row.push_back(rounded(sums.bound));
    row.push_back(percent(sums.fraction()));
    row.push_back(gpu_seconds(stall.rollout));
    row.push_back(gpu_seconds(stall.trainer));
    row.push_back(gpu_seconds(stall.offload));
    row.push_back(percent(fetch_stall(workload.fetches).fraction()));
    row.push_back(rounded(run.moved.nic));
    row.push_back(rounded(run.moved.wan));
    row.push_back(rounded(run.minimum->wan));
    row.push_back(fmt::format("{}", workload.failures.size() + (run.failure ? 1 : 0)));
    row.push_back(fmt::format("{:.2f} s", run.wall_s));
    table.add(std::move(row));
  }
  return table.text() + "Stalls in GPU-seconds; makespans and bounds are sums over the updates.\n";
}

std::string failures_text(std::span<const RunRecord> runs) {
  constexpr std::size_t kMostLines = 12;
  std::string text;
  for (const RunRecord& run : runs) {
    if (!run.workload || run.workload->failures.empty()) continue;
    const auto& failures = run.workload->failures;
    text += fmt::format("\nFailures with {}:\n", run.policy);
    for (std::size_t i = 0; i < std::min(failures.size(), kMostLines); ++i) {
      const FailureRecord& failure = failures[i];
      const std::string noticed =
          failure.detected_after
              ? fmt::format(", noticed {} later", rounded(*failure.detected_after))
              : "";
      text += printable(fmt::format("  {}  {} {}{}: {}", rounded(failure.at), failure.kind,
                                    failure.who, noticed, failure.consequence)) +
              "\n";
    }
    if (failures.size() > kMostLines) {
      text += fmt::format("  and {} more, in summary.json\n", failures.size() - kMostLines);
    }
  }
  return text;
}

}  // namespace holdfast::cli
