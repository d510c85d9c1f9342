// What a run found out, whatever carried it out, and the four files that say so:
//
//   summary.json   figures, one entry per policy    links.csv    bytes per link direction and time
//   bin events.jsonl   one event a line                 trace.json   Chrome trace format, for
//   Perfetto
//
// Definitions of the figures: run_figures.hpp; the form of each file: schemas/*.schema.json. The
// same values give the same bytes, `wall_s` and `peak_rss_bytes` aside.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/io/scenario_update.hpp"
#include "core/io/workload_record.hpp"
#include "core/plan/bound.hpp"
#include "core/plan/plan_shape.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

inline constexpr std::uint32_t kResultsFormat = 1;

// `kind` of the failure that ended a run, in `failures` of summary.json.
inline constexpr const char* kRunFailure = "run";

enum class RunEventKind {
  Start,  // of what a worker receives
  Progress,
  BlockDone,
  End,
  CallDone,  // a call of the worker's group ended
  Runs,      // what the group runs is another version, or nothing
  Fault,
};

struct RunEvent {
  Time at;
  RunEventKind kind = RunEventKind::Start;
  WorkerId worker;
  std::uint32_t percent = 0;  // Progress
  StripeId stripe;            // BlockDone
  BlockId block;              // BlockDone
  WorkerId source;            // BlockDone
  std::string text;           // CallDone "fetch 1.2: Ok ...", Runs "1.2" or "nothing", Fault
};

// Bytes that one direction of a link carried, by bin of equal length from zero to the makespan.
struct LinkUse {
  ChannelId channel;
  std::vector<Bytes> bins;
};

// Payload that arrived at workers, that entered hosts, and that crossed WAN links.
struct PayloadBytes {
  Bytes gpu;
  Bytes nic;
  Bytes wan;
  friend bool operator==(const PayloadBytes&, const PayloadBytes&) = default;
};

// One policy's run.
struct RunRecord {
  std::string backend;  // "simgrid"; "max_min": our own solver shares the links
  Time sharing_step;    // rates are made fair at most once in this time; zero: at every change
  std::string policy;   // as asked for
  std::string planner;  // what made the plan: for `auto`, what it chose
  std::uint64_t seed = 0;
  Hash128 plan;
  std::uint64_t stripes = 0;
  std::uint64_t edges = 0;
  PlanShape shape;
  std::optional<Time> predicted;  // by the cost model; nothing for a policy without a plan
  Time makespan;                  // without meaning where the run failed; with a workload: the
                                  // length of the run, over which `links` are binned
  std::vector<Time> completed;    // by worker; zero for one that misses nothing
  PayloadBytes moved;
  std::uint64_t deliveries = 0;
  std::vector<LinkUse> links;          // ascending by channel
  std::vector<RunEvent> events;        // in time order
  std::optional<std::string> failure;  // the named error that ended the run
  // Of a run of more than one update, or with faults: makespan, bound and stall of the results are
  // then added up from it, and `completed` is not used.
  std::optional<WorkloadRecord> workload;
  std::optional<PayloadBytes> minimum;  // with a workload: the least that its fetches move
  double wall_s = 0;
  std::uint64_t peak_rss_bytes = 0;  // of the process and what it started, so far
};

// What all runs of one scenario share. References: everything outlives the results.
struct ResultsContext {
  const Scenario& scenario;
  const Topology& topology;
  const UpdateTask& task;
  const Bound& bound;
  Hash128 scenario_hash;  // of the file's bytes
  Hash128 demand_hash;
  std::vector<std::string> warnings;
};

[[nodiscard]] nlohmann::ordered_json summary_json(const ResultsContext& context,
                                                  std::span<const RunRecord> runs);

// What is planned and what limits it, for programs: the part that does not depend on a policy.
[[nodiscard]] nlohmann::ordered_json plan_summary_json(const ResultsContext& context);

// Whom the bound's cut is about, with the scenario's names: a worker, replica or domain.
[[nodiscard]] std::string sink_of(const ResultsContext& context);

// What a cut says, for people: "141 GB for h1 must cross 8 links ('x' and so on), at 400 GB/s".
// `first`: one of the channels, `channels`: how many; a cut without any is about serving, or, with
// kind "digest", about verifying.
[[nodiscard]] std::string cut_words(std::string_view kind, Bytes bytes, std::string_view sink,
                                    std::string_view first, std::uint64_t channels, Rate capacity);

// Seconds as the nearest double of the exact decimal.
[[nodiscard]] double exact_seconds(Time time);

void write_events(std::ostream& out, const ResultsContext& context,
                  std::span<const RunRecord> runs);
void write_links(std::ostream& out, const ResultsContext& context, std::span<const RunRecord> runs);
// A process per policy and host, a thread per worker; a slice from a worker's start to its end, an
// instant for each tenth, block and fault.
void write_trace(std::ostream& out, const ResultsContext& context, std::span<const RunRecord> runs);

}  // namespace holdfast
