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

Json update_json(const ResultsContext& context, const RunRecord& run) {
  const bool done = !run.failure && run.makespan > Time();
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
          {"makespan_s", done ? Json(exact_seconds(run.makespan)) : Json(nullptr)},
          {"bound_s", exact_seconds(context.bound.time())}};
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

struct Minimum {
  PayloadBytes payload;
  MinimumCrossings crossings;
};

Json run_json(const ResultsContext& context, const Minimum& minimum, const RunRecord& run) {
  const Demand& demand = context.task.demand;
  const bool done = !run.failure && run.makespan > Time();
  const double bound = exact_seconds(context.bound.time());
  const double makespan = exact_seconds(run.makespan);
  const Stall stall = done ? stall_of(context, run.completed) : Stall{};

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
  json["makespan_s"] = done ? Json(makespan) : Json(nullptr);
  json["bound_s"] = bound;
  json["bound_fraction"] = done ? Json(bound / makespan) : Json(nullptr);
  json["bound_kind"] = "static";
  json["bound_attainable"] = context.bound.attainable == Attainable::Proven ? "proven" : "unknown";
  json["bound_cut"] = cut_json(context);
  json["predicted_s"] = run.predicted ? Json(exact_seconds(*run.predicted)) : Json(nullptr);

  // Publishing and offloading are not part of an update by itself: nobody waits in them.
  json["gpu_stall_s"] = done ? Json(stall.rollout.seconds()) : Json(nullptr);
  json["rollout_stall_s"] = done ? Json(stall.rollout.seconds()) : Json(nullptr);
  json["trainer_stall_s"] = 0.0;
  json["offload_stall_s"] = 0.0;
  json["stall_bound_s"] = done ? Json(stall.bound.seconds()) : Json(nullptr);
  json["stall_fraction"] = or_null(done ? stall.fraction() : std::nullopt);

  json["bytes_moved"] = bytes_json(run.moved);
  json["bytes_minimum"] = bytes_json(minimum.payload);
  json["wan_bytes"] = run.moved.wan.count();

  json["updates"] = Json::array({update_json(context, run)});
  json["failures"] = Json::array();
  if (run.failure) {
    json["failures"].push_back({{"message", *run.failure}});
  }
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
  json["runs"] = Json::array();
  for (const RunRecord& run : runs) {
    json["runs"].push_back(run_json(context, minimum, run));
  }
  return json;
}

}  // namespace holdfast
