// `workload` of a scenario: a training run that publishes a version each step, and the rollouts
// that fetch the latest.
//
//   workload:
//     kind: standalone                # or elastic, cross_dc
//     trainers: [trainer]             # groups that train and publish
//     rollouts: [rollout]             # groups that generate and fetch
//     loop: asynchronous              # or synchronous: train, publish, fetch, generate, in turn
//     steps: 20                       # training steps, each ends with a new version
//     step_time: 60s                  # of one, without waiting
//     write_time: 1s                  # its end, in which the weights are overwritten (default 0s)
//     batch: 1024                     # finished rollouts that one step consumes
//     lengths: {lognormal: {median: 4000, sigma: 1.0}, most: 32768}   # tokens of a rollout
//     token_time: 20ms                # of one token of one rollout
//     slots: 64                       # rollouts that a replica generates at a time (default 64)
//     partial_rollouts: true          # what is unfinished when the batch is full goes on under the
//                                     # next version (default false: a replica finishes what it has
//                                     # begun before it fetches)
//     staleness: 1                    # asynchronous: how many versions a rollout may be behind the
//                                     # trainer when it is consumed (default 1)
//   elastic: rollout groups with `reliability: spot` come and go, one replica a seat
//     members: {arrivals: 20/h, lifetime: {exponential: {mean: 2h}}, notice: 2min,
//               initial: 32, without_notice: 10%}
//     members: {trace: spot.csv}      # spot_trace.hpp; relative to the scenario
//   cross_dc: rollouts in other datacenters than the trainers
//     staging: [stage]                # groups on host memory that fetch beside generation, before
//                                     # the GPUs copy from them; left out: GPUs fetch over the WAN
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/io/scenario_words.hpp"
#include "core/units.hpp"
#include "core/workload/distribution.hpp"
#include "core/workload/membership.hpp"

namespace holdfast {

enum class WorkloadKind { Standalone, Elastic, CrossDatacenter };
enum class TrainingLoop { Synchronous, Asynchronous };

[[nodiscard]] const char* to_string(WorkloadKind kind);  // "standalone", "elastic", "cross_dc"
[[nodiscard]] const char* to_string(TrainingLoop loop);  // "synchronous", "asynchronous"

// A group of the scenario that plays a part, and where that is written.
struct NamedGroup {
  std::size_t group = 0;  // index into Scenario::groups
  Place place;
};

// Elastic: exactly one of the two.
struct ScenarioMembers {
  std::optional<SpotProcess> process;
  std::optional<Word> trace;  // a path relative to the scenario's file
  Place place;
};

struct ScenarioWorkload {
  WorkloadKind kind = WorkloadKind::Standalone;
  std::vector<NamedGroup> trainers;
  std::vector<NamedGroup> rollouts;
  TrainingLoop loop = TrainingLoop::Synchronous;
  std::uint32_t steps = 1;
  Time step_time;
  Time write_time;
  std::uint32_t batch = 1;
  Distribution lengths = Distribution::table({{1, 1'000'000}});  // tokens
  Time token_time;
  std::uint32_t slots = 64;
  bool partial_rollouts = false;
  std::uint32_t staleness = 0;             // always zero in a synchronous loop
  std::optional<ScenarioMembers> members;  // of an elastic workload
  std::vector<NamedGroup> staging;         // of a cross_dc workload
  Place place;
};

}  // namespace holdfast
