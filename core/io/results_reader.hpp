// The results of runs, read back from their folder: what `holdfast compare` works on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "core/io/results_links.hpp"
#include "core/io/run_detail.hpp"

namespace holdfast {

// What proves the bound, as summary.json tells it.
struct CutFigures {
  std::string kind;
  std::string sink;
  Bytes bytes;
  Rate capacity;
  std::vector<std::string> channels;  // the first ones
  std::uint64_t channel_count = 0;
};

struct GroupStall {
  std::string group;  // of the scenario
  double rollout_s = 0;
  double trainer_s = 0;
  double offload_s = 0;
};

struct WorkloadFigures {
  Time length;  // of the run
  std::optional<double> fetch_mean_s;
  std::vector<GroupStall> stalls;
};

struct RunFigures {
  std::string policy;
  std::string planner;
  std::uint64_t seed = 0;
  std::string objective;
  double jitter = 0;
  std::optional<std::uint64_t> reader_cap;  // with greedy alone, and there too it may have none
  std::optional<Time> makespan;             // nothing where the run failed
  Time bound;
  CutFigures cut;
  std::optional<Time> predicted;         // nothing for a policy that plans while it runs
  std::optional<double> stall_fraction;  // nothing where nobody waits
  PayloadBytes moved;
  PayloadBytes minimum;
  std::uint64_t blocks = 0;
  Bytes block_size;
  RunDetail detail;
  std::vector<LinkTraffic> links;
  std::optional<WorkloadFigures> workload;  // nothing for an update by itself
  std::optional<std::string> failure;

  // Bound / makespan; nothing where the run failed.
  [[nodiscard]] std::optional<double> bound_fraction() const;
};

struct ResultsInputs {
  Hash128 scenario;
  Hash128 topology;
  Hash128 manifest;
  Hash128 demand;
};

struct Results {
  std::string folder;
  std::string scenario;
  ResultsInputs inputs;
  std::string topology;
  std::string model;
  Bytes model_bytes;
  std::uint64_t workers = 0;
  std::uint64_t replicas = 0;
  std::vector<std::string> other_traffic;                    // an entry each: "50.0 % of kind wan"
  std::vector<RunFigures> runs;                              // in the order of the file
  std::vector<std::pair<std::string, std::string>> assumed;  // by a workload: name and value
};

// Reads summary.json and links.csv of a folder; the other files are not needed. What is used is
// checked, also one file against the other. Throws Error with file and JSON pointer, or line and
// column: FileNotFound and FileUnreadable (a folder that is none of ours), Unsupported (a later
// format), MissingKey (an earlier one), BadSyntax, BadValue and others where a file is damaged.
[[nodiscard]] Results read_results(const std::string& folder);

}  // namespace holdfast
