#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "cli/task.hpp"
#include "cli/workload_runs.hpp"
#include "core/io/results_folder.hpp"
#include "core/io/run_figures.hpp"
#include "sim/simulation.hpp"

namespace holdfast::cli {
namespace {

// Traces of more blocks than this fill disks and open in no viewer.
constexpr std::uint64_t kMostTracedDeliveries = 2'000'000;

sim::Trace trace_of(const std::string& name) {
  return name == "none"    ? sim::Trace::None
         : name == "block" ? sim::Trace::Block
                           : sim::Trace::Worker;
}

RunEventKind kind_of(sim::TraceKind kind) {
  switch (kind) {
    case sim::TraceKind::Start:
      return RunEventKind::Start;
    case sim::TraceKind::Progress:
      return RunEventKind::Progress;
    case sim::TraceKind::BlockDone:
      return RunEventKind::BlockDone;
    case sim::TraceKind::End:
      return RunEventKind::End;
    case sim::TraceKind::Fault:
      return RunEventKind::Fault;
  }
  return RunEventKind::Fault;
}

void take(sim::SimulationResult&& result, RunRecord& record) {
  if (result.sharing == sim::Sharing::MaxMin) record.backend = "max_min";
  record.sharing_step = result.sharing_step;
  record.makespan = result.makespan;
  record.completed = std::move(result.completed);
  record.moved = {result.moved.gpu, result.moved.nic, result.moved.wan};
  record.deliveries = result.deliveries;
  record.failure = std::move(result.failure);
  record.links.reserve(result.channels.size());
  for (sim::ChannelUse& use : result.channels) {
    record.links.push_back({use.channel, std::move(use.bins)});
  }
  record.events.reserve(result.events.size());
  for (sim::TraceEvent& event : result.events) {
    record.events.push_back({event.at, kind_of(event.kind), event.worker, event.percent,
                             event.stripe, event.block, event.source, std::move(event.text)});
  }
}

std::uint64_t deliveries_of(const Demand& demand) {
  std::uint64_t deliveries = 0;
  for (const BlockClass& block_class : demand.classes) {
    deliveries += std::uint64_t{block_count(block_class)} * block_class.receivers.size();
  }
  return deliveries;
}

void refuse_huge_trace(const SimulateArguments& arguments, const Demand& demand) {
  const std::uint64_t deliveries = deliveries_of(demand);
  if (arguments.trace == "block" && deliveries > kMostTracedDeliveries && !arguments.force) {
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("this run delivers {} blocks, and a trace of blocks ends at {}; use "
                            "'--trace worker', larger blocks or --force",
                            deliveries, kMostTracedDeliveries),
                Place{"--trace", 0, 0, {}, {}});
  }
}

void note_plan(const Plan& plan, RunRecord& record) {
  record.plan = hash_of(plan);
  record.stripes = plan.stripes.size();
  record.edges = edges_of(plan);
}

// Runs a policy that plans while it runs, and checks afterwards what it did.
void carry_out_online(const Task& task, Policy policy, sim::SimulationOptions& options,
                      RunRecord& record) {
  constexpr std::int64_t kPatience = 100;
  if (task.bound.time() < Time::never() / kPatience) {
    options.read_deadline = std::max(options.read_deadline, task.bound.time() * kPatience);
  }
  const std::optional<std::uint32_t> cap = task.loaded.scenario.options.reader_cap;
  if (cap) record.planner += fmt::format(" cap {}", *cap);
  sim::SimulationResult result =
      sim::simulate_greedy(task.router, task.update.demand, cap, options);
  const std::optional<Plan> plan = std::move(result.plan);
  take(std::move(result), record);
  if (!plan) return;
  note_plan(*plan, record);
  if (record.failure) return;
  const auto refused = check(*plan, task.update.demand, task.router);
  if (refused.empty()) {
    record.shape = shape_of(*plan, task.update.demand, task.router);
    return;
  }
  print_refused(policy, refused);
  record.failure = "internal error: the checker refuses what was done: " + refused.front().message;
}

std::uint64_t seed_of(const Task& task, const SimulateArguments& arguments) {
  return arguments.seed.value_or(task.loaded.scenario.seed.value_or(0));
}

// Plans and runs one policy. What goes wrong here is a failure of the run, not of the input.
void carry_out(const Task& task, Policy policy, const SimulateArguments& arguments,
               Progress& progress, RunRecord& record) {
  if (task.deployment) {
    carry_out_workload(
        task, policy, trace_of(arguments.trace),
        [&](double fraction) { progress.show(record.policy, fraction); }, record);
    return;
  }
  sim::SimulationOptions options;
  options.trace = trace_of(arguments.trace);
  options.jitter = task.loaded.scenario.options.jitter;
  options.seed = record.seed;
  options.worker_name = [&task](WorkerId worker) {
    const DemandWorker& w = task.update.demand.workers[worker.index()];
    return fmt::format("'{}' of {}", task.loaded.topology.node(w.node).name,
                       task.update.replicas[w.group].name);
  };
  options.progress = [&](double fraction) { progress.show(record.policy, fraction); };
  if (is_online(policy)) {
    carry_out_online(task, policy, options, record);
    return;
  }
  CheckedPlan checked = make_checked_plan(task, policy, record.seed);
  record.planner = checked.planned.planner;
  record.predicted = checked.planned.predicted;
  note_plan(checked.planned.plan, record);
  if (!checked.refused.empty()) {
    print_refused(policy, checked.refused);
    record.failure =
        "internal error: the checker refuses the plan: " + checked.refused.front().message;
    return;
  }
  record.shape = shape_of(checked.planned.plan, task.update.demand, task.router);
  // A slow link makes a slow run, not a failed one: only what takes many times as long as predicted
  // is given up.
  constexpr std::int64_t kPatience = 10;
  if (checked.planned.predicted < Time::never() / kPatience) {
    options.read_deadline = std::max(options.read_deadline, checked.planned.predicted * kPatience);
  }
  take(sim::simulate(task.router, task.update.demand, checked.planned.plan, options), record);
}

RunRecord run_policy(const Task& task, Policy policy, const SimulateArguments& arguments,
                     Progress& progress) {
  RunRecord record;
  record.backend = "simgrid";
  record.policy = to_string(policy);
  record.planner = record.policy;
  record.seed = seed_of(task, arguments);
  const auto start = std::chrono::steady_clock::now();
  progress.show(record.policy, 0);
  try {
    carry_out(task, policy, arguments, progress, record);
  } catch (const Error& error) {
    record.failure = error.what();
  }
  progress.clear();
  record.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  record.peak_rss_bytes = peak_rss_bytes();
  if (record.failure) {
    print_error(fmt::format("policy {}: {}", record.policy, *record.failure));
  }
  return record;
}

std::vector<std::string> row_of(const Task& task, const RunRecord& run) {
  std::vector<std::string> row = {run.policy, run.planner};
  if (run.failure) {
    row.emplace_back("failed");
    return row;
  }
  const Stall stall = stall_of(task.context(), run.completed);
  const double share = exact_seconds(task.bound.time()) / exact_seconds(run.makespan);
  row.push_back(rounded(run.makespan));
  row.push_back(rounded(task.bound.time()));
  row.push_back(percent(share));
  row.push_back(percent(stall.fraction()));
  row.push_back(run.predicted ? rounded(*run.predicted) : "-");
  row.push_back(rounded(run.moved.nic));
  row.push_back(rounded(run.moved.wan));
  row.push_back(fmt::format("{:.2f} s", run.wall_s));
  return row;
}

std::string table_of(const Task& task, const std::vector<RunRecord>& runs) {
  using Align = Table::Align;
  Table table({{"policy", Align::Left},
               {"planner", Align::Left},
               {"makespan"},
               {"bound"},
               {"share"},
               {"stall share"},
               {"predicted"},
               {"into hosts"},
               {"WAN"},
               {"ran in"}});
  for (const RunRecord& run : runs) {
    table.add(row_of(task, run));
  }
  return table.text();
}

void warn_of_seed(const SimulateArguments& arguments, const Scenario& scenario) {
  if (arguments.seed && !draws(scenario)) {
    print_warnings({"--seed has no effect: nothing draws random numbers in this scenario"});
  }
}

}  // namespace

ExitStatus simulate(const SimulateArguments& arguments) {
  if (!arguments.out.empty()) {
    require_results_folder(arguments.out);
  }
  const Task task(arguments.scenario, arguments.policy, true);
  refuse_huge_trace(arguments, task.update.demand);
  print_warnings(task.warnings);
  if (task.deployment) print_warnings(check_workload(task, seed_of(task, arguments)));
  warn_of_seed(arguments, task.loaded.scenario);
  if (!arguments.json) {
    print(task.deployment ? workload_heading(task) : heading(task));
  }
  Progress progress;
  std::vector<RunRecord> runs;
  bool failed = false;
  for (const Policy policy : task.policies) {
    runs.push_back(run_policy(task, policy, arguments, progress));
    failed = failed || runs.back().failure.has_value();
  }
  const ResultsContext context = task.context();
  if (arguments.json) {
    print(summary_json(context, runs)
              .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
          "\n");
  } else if (task.deployment) {
    print(workload_table(runs) + failures_text(runs));
  } else {
    print(table_of(task, runs));
  }
  if (!arguments.out.empty()) {
    try {
      write_results(arguments.out, context, runs);
    } catch (const Error& error) {
      // The folder was good when the run began.
      print_error(error);
      failed = true;
    }
  }
  return failed ? ExitStatus::Failed : ExitStatus::Done;
}

}  // namespace holdfast::cli
