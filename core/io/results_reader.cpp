#include "core/io/results_reader.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "core/io/results_detail.hpp"
#include "core/io/text_file.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

// Some hundred kilobytes a policy are usual.
constexpr std::uint64_t kMostSummaryBytes = 256'000'000;
// What Time holds, with room for a rounding.
constexpr double kLongest = 9.2e6;

Time read_time(const JsonValue& value) {
  return time_from_seconds(value.number(0, kLongest));
}

CutFigures read_cut(const JsonValue& value) {
  CutFigures cut;
  cut.kind = value.at("kind").text();
  cut.sink = value.at("sink").text();
  cut.bytes = value.at("bytes").bytes();
  cut.capacity = value.at("capacity_bytes_per_s").rate();
  for (const JsonValue& channel : value.at("channels").list()) {
    cut.channels.push_back(channel.text());
  }
  cut.channel_count = value.at("channel_count").count();
  return cut;
}

PayloadBytes read_bytes(const JsonValue& value) {
  return {value.at("gpu").bytes(), value.at("nic").bytes(), value.at("wan").bytes()};
}

std::optional<WorkloadFigures> read_workload(const JsonValue& value) {
  constexpr double kMost = 1e18;
  if (value.is_null()) return std::nullopt;
  WorkloadFigures workload;
  workload.length = read_time(value.at("length_s"));
  workload.fetch_mean_s = value.at("fetch_mean_s").number_or_null(0, kMost);
  for (const JsonValue& stall : value.at("stalls").list()) {
    workload.stalls.push_back({stall.at("group").text(),
                               stall.at("rollout_stall_s").number(0, kMost),
                               stall.at("trainer_stall_s").number(0, kMost),
                               stall.at("offload_stall_s").number(0, kMost)});
  }
  return workload;
}

RunFigures read_run(const JsonValue& value) {
  RunFigures run;
  run.policy = value.at("policy").text();
  run.planner = value.at("planner").text();
  run.seed = value.at("seed").count();
  run.objective = value.at("objective").text();
  run.jitter = value.at("jitter").number(0, 1);
  if (!value.at("reader_cap").is_null()) run.reader_cap = value.at("reader_cap").count();
  if (!value.at("makespan_s").is_null()) {
    run.makespan = read_time(value.at("makespan_s"));
    if (*run.makespan == Time()) {
      value.at("makespan_s").refuse(ErrorCode::BadValue, "a run that is done took some time");
    }
  }
  run.bound = read_time(value.at("bound_s"));
  run.cut = read_cut(value.at("bound_cut"));
  if (!value.at("predicted_s").is_null()) run.predicted = read_time(value.at("predicted_s"));
  run.stall_fraction = value.at("stall_fraction").number_or_null(0, 1e9);
  run.moved = read_bytes(value.at("bytes_moved"));
  run.minimum = read_bytes(value.at("bytes_minimum"));
  run.blocks = value.at("blocks").count();
  run.block_size = value.at("block_size").bytes();
  run.detail = read_detail(value);
  run.workload = read_workload(value.at("workload"));
  for (const JsonValue& failure : value.at("failures").list()) {
    if (failure.at("kind").text() == kRunFailure) run.failure = failure.at("message").text();
  }
  if (run.failure.has_value() == run.makespan.has_value()) {
    value.refuse(ErrorCode::BadValue, "a run has either a makespan or a failure");
  }
  return run;
}

void require_format(const JsonValue& root) {
  const JsonValue name = root.at("program").at("name");
  if (name.text() != "holdfast") {
    name.refuse(ErrorCode::BadValue, "these are not results of holdfast");
  }
  const JsonValue format = root.at("format");
  if (format.count() != kResultsFormat) {
    format.refuse(ErrorCode::Unsupported,
                  fmt::format("format {} is not read by this version; it reads format {}",
                              format.count(), kResultsFormat));
  }
}

Results read_summary(const std::string& file) {
  const std::string text = read_text_file(file, kMostSummaryBytes);
  const JsonDocument document = JsonDocument::parse(text, file);
  const JsonValue root = document.root();
  require_format(root);
  Results results;
  results.scenario = root.at("scenario").text();
  const JsonValue inputs = root.at("inputs");
  results.inputs = {inputs.at("scenario").hash(), inputs.at("topology").hash(),
                    inputs.at("manifest").hash(), inputs.at("demand").hash()};
  results.topology = root.at("topology").text();
  results.model = root.at("model").at("name").text();
  results.model_bytes = root.at("model").at("bytes").bytes();
  results.workers = root.at("workers").count();
  results.replicas = root.at("replicas").count();
  for (const JsonValue& traffic : root.at("other_traffic").list()) {
    results.other_traffic.push_back(fmt::format(
        "{:.6g} % of {}", traffic.at("share").number(0, 1) * 100, traffic.at("links").text()));
  }
  for (const JsonValue& value : root.at("assumed").list()) {
    results.assumed.emplace_back(value.at("name").text(), value.at("value").text());
  }
  for (const JsonValue& value : root.at("runs").list()) {
    RunFigures run = read_run(value);
    const bool known = std::any_of(results.runs.begin(), results.runs.end(),
                                   [&](const RunFigures& r) { return r.policy == run.policy; });
    if (known) {
      value.refuse(ErrorCode::Duplicate, fmt::format("policy '{}' is there twice", run.policy));
    }
    results.runs.push_back(std::move(run));
  }
  if (results.runs.empty()) {
    root.at("runs").refuse(ErrorCode::BadValue, "there is no run in these results");
  }
  return results;
}

// Both files of one run tell the same, or they are not of one run.
void require_match(const RunFigures& run, const PolicyTraffic& traffic, const std::string& file) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::BadValue,
                fmt::format("policy '{}': {} here than in summary.json: the files are of different "
                            "runs",
                            run.policy, what),
                Place{file, 0, 0, {}, {}});
  };
  if (run.makespan) {
    // The summary has the nearest double of the exact decimal here.
    const double end = exact_seconds(traffic.end);
    const double makespan = exact_seconds(run.workload ? run.workload->length : *run.makespan);
    if (std::abs(end - makespan) > 1e-12 + 1e-12 * makespan) {
      refuse(fmt::format("the run ends at {} s, another time", end));
    }
  }
  for (const BusyLink& busy : run.detail.busiest) {
    const auto found = std::find_if(traffic.links.begin(), traffic.links.end(),
                                    [&](const LinkTraffic& l) { return l.link == busy.link; });
    if (found == traffic.links.end() || found->bytes != busy.bytes ||
        found->capacity != busy.capacity) {
      refuse(fmt::format("link '{}' carries something else", busy.link));
    }
  }
}

void add_links(const std::string& file, Results& results) {
  std::ifstream in(file, std::ios::binary);
  if (!in || !fs::is_regular_file(file)) {
    throw Error(ErrorCode::FileNotFound,
                "this cannot be read; `holdfast simulate --out` writes it beside summary.json",
                Place{file, 0, 0, {}, {}});
  }
  std::vector<PolicyTraffic> all = read_links(in, file);
  if (in.bad()) {
    throw Error(ErrorCode::FileUnreadable, "the file could not be read to its end",
                Place{file, 0, 0, {}, {}});
  }
  for (PolicyTraffic& traffic : all) {
    const auto run = std::find_if(results.runs.begin(), results.runs.end(),
                                  [&](const RunFigures& r) { return r.policy == traffic.policy; });
    if (run == results.runs.end()) {
      throw Error(ErrorCode::UnknownName,
                  fmt::format("summary.json beside it has no policy '{}': the files are of "
                              "different runs",
                              traffic.policy),
                  Place{file, 0, 0, {}, {}});
    }
    require_match(*run, traffic, file);
    run->links = std::move(traffic.links);
  }
  for (const RunFigures& run : results.runs) {
    if (run.links.empty() && run.makespan) {
      require_match(run, {run.policy, run.workload ? run.workload->length : *run.makespan, {}},
                    file);
    }
  }
}

}  // namespace

std::optional<double> RunFigures::bound_fraction() const {
  if (!makespan) return std::nullopt;
  return exact_seconds(bound) / exact_seconds(*makespan);
}

Results read_results(const std::string& folder) {
  std::error_code failure;
  const fs::path path(folder);
  if (!fs::is_directory(path, failure)) {
    throw Error(ErrorCode::FileNotFound,
                "this is no folder; name one that `holdfast simulate --out` wrote",
                Place{folder, 0, 0, {}, {}});
  }
  if (!fs::exists(path / "summary.json", failure)) {
    throw Error(ErrorCode::FileNotFound,
                "there is no summary.json in this folder; name one that `holdfast simulate --out` "
                "wrote",
                Place{folder, 0, 0, {}, {}});
  }
  Results results = read_summary((path / "summary.json").string());
  results.folder = folder;
  add_links((path / "links.csv").string(), results);
  return results;
}

}  // namespace holdfast
