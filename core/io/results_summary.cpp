#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/io/program_version.hpp"
#include "core/io/results.hpp"
#include "core/io/results_detail.hpp"
#include "core/io/run_figures.hpp"

namespace holdfast {
namespace {

using Json = nlohmann::ordered_json;

// A cut of a large machine has thousands of links; the first ones show which they are.
constexpr std::size_t kMostChannels = 32;

Json bytes_json(const PayloadBytes& bytes) {
  return {{"gpu", bytes.gpu.count()}, {"nic", bytes.nic.count()}, {"wan", bytes.wan.count()}};
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

const char* attainable(const Bound& bound) {
  return bound.attainable == Attainable::Proven ? "proven" : "unknown";
}

Json cut_json(const ResultsContext& context) {
  const Cut& cut = context.bound.cut;
  Json channels = Json::array();
  for (std::size_t i = 0; i < std::min(cut.channels.size(), kMostChannels); ++i) {
    channels.push_back(context.topology.channel_name(cut.channels[i]));
  }
  return {{"kind", to_string(cut.kind)},
          {"sink", sink_of(context)},
          {"receivers", cut.receivers.size()},
          {"bytes", cut.bytes.count()},
          {"capacity_bytes_per_s", cut.capacity.bytes_per_second()},
          {"latency_s", exact_seconds(cut.latency)},
          {"channels", std::move(channels)},
          {"channel_count", cut.channels.size()}};
}

double as_share(std::uint32_t millionths) {
  return static_cast<double>(millionths) / 1e6;
}

// Figures of a run that are made another way with a workload than for one update.
struct RunTotals {
  bool done = false;
  std::optional<double> makespan;
  double bound = 0;
  std::optional<double> bound_fraction;
  bool nominal = false;
  std::optional<double> rollout_stall;
  double trainer_stall = 0;
  double offload_stall = 0;
  std::optional<double> stall_bound;
  std::optional<double> stall_fraction;
  PayloadBytes minimum;
  std::vector<UpdateFigures> updates;  // of a workload
};

RunTotals totals_of_update(const ResultsContext& context, const PayloadBytes& minimum,
                           const RunRecord& run) {
  RunTotals totals;
  totals.done = !run.failure && run.makespan > Time();
  totals.bound = exact_seconds(context.bound.time());
  totals.minimum = minimum;
  if (!totals.done) return totals;
  const Stall stall = stall_of(context, run.completed);
  totals.makespan = exact_seconds(run.makespan);
  totals.bound_fraction = totals.bound / *totals.makespan;
  totals.rollout_stall = stall.rollout.seconds();
  totals.stall_bound = stall.bound.seconds();
  totals.stall_fraction = stall.fraction();
  return totals;
}

RunTotals totals_of_workload(const PayloadBytes& minimum, const RunRecord& run) {
  const WorkloadRecord& workload = *run.workload;
  RunTotals totals;
  std::vector<Time> faults;
  for (const FailureRecord& failure : workload.failures) faults.push_back(failure.at);
  totals.updates = updates_of(workload.fetches, workload.joint, faults);
  const UpdateSums sums = sums_of(totals.updates);
  totals.done = !run.failure && sums.makespan > Time();
  totals.bound = exact_seconds(sums.bound);
  totals.nominal =
      totals.updates.size() != 1 || totals.updates.front().bound_kind == BoundKind::Nominal;
  totals.minimum = run.minimum.value_or(minimum);
  const StallParts stall = stall_parts(workload.groups);
  totals.trainer_stall = stall.trainer.seconds();
  totals.offload_stall = stall.offload.seconds();
  if (run.failure) return totals;
  totals.rollout_stall = stall.rollout.seconds();
  const FetchStall fetches = fetch_stall(workload.fetches);
  totals.stall_bound = fetches.bound.seconds();
  totals.stall_fraction = fetches.fraction();
  if (!totals.done) return totals;
  totals.makespan = exact_seconds(sums.makespan);
  totals.bound_fraction = sums.fraction();
  return totals;
}

Json update_json(const ResultsContext& context, const RunTotals& totals) {
  std::size_t groups = 0;
  for (const Replica& replica : context.task.replicas) {
    groups += replica.receives ? 1 : 0;
  }
  std::size_t receivers = 0;
  for (const Bytes missing : missing_bytes(context.task.demand)) {
    receivers += missing > Bytes() ? 1 : 0;
  }
  const Version version = context.task.demand.version;
  return {{"lineage", version.lineage},
          {"number", version.number},
          {"destination", to_string(context.scenario.update.destination)},
          {"replicas", groups},
          {"receivers", receivers},
          {"start_s", 0.0},
          {"last_completion_s", or_null(totals.makespan)},
          {"makespan_s", or_null(totals.makespan)},
          {"bound_s", totals.bound},
          {"bound_kind", "static"},
          {"completed", totals.done ? groups : 0},
          {"failed", totals.done ? 0 : groups}};
}

Json update_json(const UpdateFigures& update) {
  const auto seconds_or_null = [](const std::optional<Time>& time) {
    return time ? Json(exact_seconds(*time)) : Json(nullptr);
  };
  return {{"lineage", update.version.lineage},
          {"number", update.version.number},
          {"destination", to_string(update.in_place ? Destination::InPlace : Destination::Shadow)},
          {"replicas", update.completed + update.failed},
          {"receivers", update.workers},
          {"start_s", exact_seconds(update.first_request)},
          {"last_completion_s", seconds_or_null(update.last_completion)},
          {"makespan_s", seconds_or_null(update.makespan())},
          {"bound_s", exact_seconds(update.bound)},
          {"bound_kind", to_string(update.bound_kind)},
          {"completed", update.completed},
          {"failed", update.failed}};
}

// A run without a makespan always says why.
Json failures_json(const RunRecord& run, bool done) {
  Json json = Json::array();
  if (run.workload) {
    for (const FailureRecord& failure : run.workload->failures) {
      const auto& after = failure.detected_after;
      json.push_back(
          {{"message", fmt::format("{} {}: {}", failure.kind, failure.who, failure.consequence)},
           {"time_s", exact_seconds(failure.at)},
           {"kind", failure.kind},
           {"who", failure.who},
           {"detected_after_s", after ? Json(exact_seconds(*after)) : Json(nullptr)},
           {"consequence", failure.consequence}});
    }
  }
  if (!done) {
    json.push_back({{"message", run.failure.value_or("no update was completed")},
                    {"time_s", nullptr},
                    {"kind", kRunFailure},
                    {"who", ""},
                    {"detected_after_s", nullptr},
                    {"consequence", "the run ended"}});
  }
  return json;
}

Json inputs_json(const ResultsContext& context) {
  const Demand& demand = context.task.demand;
  Json json;
  json["format"] = kResultsFormat;
  json["program"] = {{"name", "holdfast"}, {"version", kProgramVersion}};
  json["scenario"] = context.scenario.name;
  json["teaches"] = context.scenario.teaches;
  json["inputs"] = {{"scenario", to_string(context.scenario_hash)},
                    {"topology", to_string(context.topology.hash())},
                    {"manifest", to_string(context.task.manifest)},
                    {"demand", to_string(context.demand_hash)}};
  json["topology"] = context.topology.name();
  json["model"] = {{"name", demand.model}, {"bytes", context.task.model_bytes.count()}};
  json["workers"] = demand.workers.size();
  json["replicas"] = context.task.replicas.size();
  json["other_traffic"] = Json::array();
  for (const OtherTraffic& traffic : context.scenario.other_traffic) {
    json["other_traffic"].push_back(
        {{"links", to_string(traffic)}, {"share", as_share(traffic.share)}});
  }
  json["assumptions"] = context.scenario.assumptions;
  json["warnings"] = context.warnings;
  return json;
}

// By group of the scenario: replicas are named after theirs, as in "near[3]".
Json stalls_json(const ResultsContext& context, const WorkloadRecord& workload) {
  std::vector<std::pair<std::string, std::vector<GroupTime>>> groups;
  for (std::size_t g = 0; g < workload.groups.size(); ++g) {
    const std::string& replica = context.task.replicas[g].name;
    const std::string name = replica.substr(0, replica.rfind('['));
    if (groups.empty() || groups.back().first != name)
      groups.emplace_back(name, std::vector<GroupTime>());
    groups.back().second.push_back(workload.groups[g]);
  }
  Json stalls = Json::array();
  for (const auto& [name, times] : groups) {
    const StallParts parts = stall_parts(times);
    stalls.push_back({{"group", name},
                      {"rollout_stall_s", parts.rollout.seconds()},
                      {"trainer_stall_s", parts.trainer.seconds()},
                      {"offload_stall_s", parts.offload.seconds()}});
  }
  return stalls;
}

std::optional<double> fetch_mean(const WorkloadRecord& workload) {
  double sum = 0;
  std::uint64_t count = 0;
  for (const FetchRecord& fetch : workload.fetches) {
    if (!fetch.completed || !fetch.generates) continue;
    sum += exact_seconds(fetch.ended - fetch.requested);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

Json workload_json(const ResultsContext& context, const WorkloadRecord& workload) {
  Json plans = Json::array();
  for (const Hash128& plan : workload.plans) plans.push_back(to_string(plan));
  return {{"length_s", exact_seconds(workload.length)},
          {"versions", workload.versions},
          {"rollouts", workload.finished},
          {"stale", workload.stale},
          {"lost", workload.lost},
          {"fetch_mean_s", or_null(fetch_mean(workload))},
          {"stalls", stalls_json(context, workload)},
          {"plans", std::move(plans)}};
}

// What tells variants of a workload apart.
Json assumed_json(const ResultsContext& context) {
  Json all = Json::array();
  const Scenario& scenario = context.scenario;
  if (!scenario.workload) return all;
  const ScenarioWorkload& workload = *scenario.workload;
  const auto add = [&](const char* name, std::string value) {
    all.push_back({{"name", name}, {"value", std::move(value)}});
  };
  add("partial_rollouts", workload.partial_rollouts ? "true" : "false");
  add("staleness", fmt::format("{}", workload.staleness));
  add("median tokens", fmt::format("{:.0f}", workload.lengths.quantile(0.5)));
  add("99 % tokens", fmt::format("{:.0f}", workload.lengths.quantile(0.99)));
  add("token_time", to_string(workload.token_time));
  add("slots", fmt::format("{}", workload.slots));
  add("batch", fmt::format("{}", workload.batch));
  add("step_time", to_string(workload.step_time));
  add("write_time", to_string(workload.write_time));
  add("model", to_string(context.task.model_bytes));
  add("topology", context.topology.name());
  add("replicas", fmt::format("{}", context.task.replicas.size()));
  if (workload.members && workload.members->process) {
    const SpotProcess& process = *workload.members->process;
    add("arrivals", fmt::format("{:.6g}/h", process.arrivals_per_hour));
    add("lifetime", fmt::format("{:.6g}s", process.lifetime.mean()));
  }
  const ScenarioBaselines& baselines = scenario.baselines;
  add("nccl init_time", to_string(baselines.nccl.init_time));
  add("nccl algorithm", to_string(baselines.nccl.algorithm));
  add("ucx connect_time", to_string(baselines.ucx.connect_time));
  return all;
}

struct Minimum {
  PayloadBytes payload;
  MinimumCrossings crossings;
};

Json run_json(const ResultsContext& context, const Minimum& minimum, const RunRecord& run) {
  const Demand& demand = context.task.demand;
  const RunTotals totals = run.workload ? totals_of_workload(minimum.payload, run)
                                        : totals_of_update(context, minimum.payload, run);

  Json json;
  json["scenario"] = context.scenario.name;
  json["backend"] = run.backend;
  json["sharing_step_s"] = exact_seconds(run.sharing_step);
  json["policy"] = run.policy;
  json["planner"] = run.planner;
  json["seed"] = run.seed;
  json["objective"] = to_string(context.scenario.options.objective);
  json["jitter"] = as_share(context.scenario.options.jitter);
  const auto cap = run.policy == "greedy" ? context.scenario.options.reader_cap : std::nullopt;
  json["reader_cap"] = cap ? Json(*cap) : Json(nullptr);
  json["makespan_s"] = or_null(totals.makespan);
  json["bound_s"] = totals.bound;
  json["bound_fraction"] = or_null(totals.bound_fraction);
  json["bound_kind"] = to_string(totals.nominal ? BoundKind::Nominal : BoundKind::Static);
  json["bound_attainable"] = context.bound.attainable == Attainable::Proven ? "proven" : "unknown";
  json["bound_cut"] = cut_json(context);
  json["predicted_s"] = run.predicted ? Json(exact_seconds(*run.predicted)) : Json(nullptr);

  json["gpu_stall_s"] =
      totals.rollout_stall
          ? Json(*totals.rollout_stall + totals.trainer_stall + totals.offload_stall)
          : Json(nullptr);
  json["rollout_stall_s"] = or_null(totals.rollout_stall);
  json["trainer_stall_s"] = totals.trainer_stall;
  json["offload_stall_s"] = totals.offload_stall;
  json["stall_bound_s"] = or_null(totals.stall_bound);
  json["stall_fraction"] = or_null(totals.stall_fraction);

  json["bytes_moved"] = bytes_json(run.moved);
  json["bytes_minimum"] = bytes_json(totals.minimum);
  json["wan_bytes"] = run.moved.wan.count();

  json["updates"] = Json::array();
  if (!run.workload) json["updates"].push_back(update_json(context, totals));
  for (const UpdateFigures& update : totals.updates) json["updates"].push_back(update_json(update));
  json["failures"] = failures_json(run, totals.done);
  json["workload"] = run.workload ? workload_json(context, *run.workload) : Json(nullptr);
  json["plan_hash"] = to_string(run.plan);
  json["stripes"] = run.stripes;
  json["edges"] = run.edges;
  json["deliveries"] = run.deliveries;
  add_detail(json, detail_of(context, minimum.crossings, run));
  json["blocks"] = demand.block_bytes.size();
  json["block_size"] = demand.block_size.count();
  json["verify"] = demand.verify;
  json["wall_s"] = run.wall_s;
  json["peak_rss_bytes"] = run.peak_rss_bytes;
  return json;
}

}  // namespace

std::string sink_of(const ResultsContext& context) {
  const Cut& cut = context.bound.cut;
  if (cut.kind != CutKind::Group || cut.receivers.empty()) {
    return cut.sink;
  }
  const DemandWorker& worker = context.task.demand.workers[cut.receivers.front().index()];
  return context.task.replicas[worker.group].name;
}

std::string cut_words(std::string_view kind, Bytes bytes, std::string_view sink,
                      std::string_view first, std::uint64_t channels, Rate capacity) {
  std::string through = "must be served";
  if (kind == to_string(CutKind::Digest)) {
    through = "must be verified";
  } else if (channels > 0) {
    through = channels == 1 ? fmt::format("must cross '{}'", first)
                            : fmt::format("must cross {} links ('{}' and so on)", channels, first);
  }
  return fmt::format("{} for {} {}, at {}", rounded(bytes), sink, through, rounded(capacity));
}

double exact_seconds(Time time) {
  // One division by a power of ten is correctly rounded where the count is exact in a double.
  return static_cast<double>(time.picoseconds()) / 1e12;
}

Json plan_summary_json(const ResultsContext& context) {
  Json json = inputs_json(context);
  json["objective"] = to_string(context.scenario.options.objective);
  json["bound_s"] = exact_seconds(context.bound.time());
  json["bound_attainable"] = attainable(context.bound);
  json["bound_cut"] = cut_json(context);
  json["bytes_minimum"] = bytes_json(minimum_bytes(context.topology, context.task.demand));
  json["blocks"] = context.task.demand.block_bytes.size();
  json["block_size"] = context.task.demand.block_size.count();
  json["verify"] = context.task.demand.verify;
  return json;
}

Json summary_json(const ResultsContext& context, std::span<const RunRecord> runs) {
  Json json = inputs_json(context);
  const Demand& demand = context.task.demand;
  const Minimum minimum{minimum_bytes(context.topology, demand),
                        minimum_crossings(context.topology, demand)};
  json["assumed"] = assumed_json(context);
  json["runs"] = Json::array();
  for (const RunRecord& run : runs) {
    json["runs"].push_back(run_json(context, minimum, run));
  }
  return json;
}

}  // namespace holdfast
