// Carries a workload out over a WeightService: trainers train and publish, rollouts generate and
// fetch, machines come, go and fail. What it saw comes back as values.
//
// Loops. At time zero the trainers publish version 1.1 and the rollouts fetch it. Then, `steps`
// times:
//   synchronous    rollouts generate a batch and stand still; the trainers train, unpublish,
//                  overwrite, publish; the rollouts fetch
//   asynchronous   rollouts generate all the time. A step begins when a batch is there whose
//                  rollouts are at most `staleness` versions behind; older ones are thrown away. A
//                  rollout counts for the version that wrote its last token. Generation never
//                  pauses because too much is there.
// A rollout replica asks for the latest version when that is published (or, with staging near it,
// when all of that has it). With partial rollouts it does so at once and goes on with what it had
// begun; without it begins nothing new and asks when all of that is finished, which is no stall.
// One that joins, or lost its weights, asks at once. What fails is tried again after a second,
// three times, then with the next version. A notice is answered with a leave at once. Without
// `generation` there is one update: publish, fetch, end.
//
// A run ends when all steps are done and everybody who is there has the last version or gave it
// up; at `horizon` at the latest, which is a failure.
//
// Users' code is told of a new version in no time; whatever runs beside the weights (caches,
// optimisers, other traffic of the training) takes no time either.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"
#include "core/workload/distribution.hpp"
#include "core/workload/faults.hpp"
#include "core/workload/membership.hpp"
#include "core/workload/stalls.hpp"
#include "core/workload/updates.hpp"
#include "sim/simulation.hpp"
#include "sim/weight_service.hpp"

namespace holdfast::sim {

enum class Plays { Trainer, Rollout, Staging };

struct WorkloadGroup {
  Plays plays = Plays::Rollout;
  std::uint64_t gpus = 0;  // that wait together; zero on host memory
  Destination destination = Destination::InPlace;
  std::vector<GroupId> stages;  // of a rollout: staging that it waits for
  bool from_start = true;       // false: it comes with its first Join
};

struct Generation {
  bool synchronous = false;
  std::uint32_t batch = 1;
  Distribution lengths = Distribution::table({{1, 1'000'000}});  // tokens
  Time token_time;
  std::uint32_t slots = 1;
  bool partial = false;
  std::uint32_t staleness = 0;
  std::uint32_t steps = 1;
  Time step_time;   // with write_time
  Time write_time;  // its end
};

struct Retaining {
  std::uint32_t copies = 1;
  Level level = Level::Host;
  std::uint32_t versions = 1;  // the latest
};

struct WorkloadRun {
  std::vector<WorkloadGroup> groups;  // by GroupId
  std::optional<Generation> generation;
  std::vector<GroupId> seats;        // of `members`
  std::vector<MemberEvent> members;  // by time
  std::optional<Retaining> retain;
  std::vector<FaultRule> rules;
  FaultSchedule faults;  // made of them
  Time publish_deadline = seconds(60);
  Time unpublish_deadline = seconds(60);
  Time fetch_deadline = seconds(600);
  Time retain_deadline = seconds(600);
  OnDeadline on_deadline = OnDeadline::Fail;
  OnNewer on_newer = OnNewer::Finish;
  Time horizon = seconds(3600);
  std::uint64_t seed = 0;
  Trace trace = Trace::Worker;
};

// A version, or a part of it, in a group's buffers: nobody can read it elsewhere before.
struct Held {
  GroupId group;
  Version version;
  Time from;  // when it was published, or began to arrive
  Time to;    // never(): to the end
};

enum class WorkloadEventKind { Start, Progress, BlockDone, End, Call, Runs, Fault };

struct WorkloadEvent {
  Time at;
  WorkloadEventKind kind = WorkloadEventKind::Start;
  WorkerId worker;            // invalid: of no worker
  std::uint32_t percent = 0;  // Progress: of its shard
  BlockId block;              // BlockDone
  WorkerId source;            // BlockDone
  std::string text;           // Call "fetch 1.2: Ok", Runs "1.2" or "nothing", Fault
};

// Something that failed, was taken away or was lost.
struct WorkloadFailure {
  Time at;
  std::string kind;  // "host", "link", "spot", "fetch", "version", "retention", "plan"
  std::string who;
  std::optional<Time> detected_after;
  std::string consequence;
};

struct WorkloadOutcome {
  Time length;
  FlowDriver driver{};
  std::vector<GroupTime> groups;     // by GroupId
  std::vector<FetchRecord> fetches;  // by their end; without bounds
  std::vector<Held> held;
  std::vector<Time> memory_from;          // by host memory of the setup: first block; never()
  std::vector<WorkloadFailure> failures;  // by time
  std::vector<WorkloadEvent> events;      // by time
  MovedBytes moved;
  std::uint64_t deliveries = 0;
  std::vector<ChannelUse> channels;
  std::vector<Hash128> plans;  // in the order in which they were made
  std::uint64_t stripes = 0;   // of all of them
  std::uint64_t edges = 0;
  std::uint32_t versions = 0;          // published
  std::uint64_t finished = 0;          // rollouts
  std::uint64_t stale = 0;             // of them, thrown away for their age
  std::uint64_t lost = 0;              // begun, and lost with their machine
  std::optional<std::string> failure;  // what ended the run early
};

// Called in the process that runs it. Services live once in a process.
using MakeService = std::function<std::unique_ptr<WeightService>()>;

// In a forked child, like `simulate`. The setup is the one that the service is made of. Throws
// Error as the service's construction does. `progress` hears a fraction now and then.
// Deterministic.
[[nodiscard]] WorkloadOutcome simulate_workload(const Topology& topology, const ServiceSetup& setup,
                                                const WorkloadRun& run, const MakeService& make,
                                                const std::function<void(double)>& progress = {});

// The same in this process.
[[nodiscard]] WorkloadOutcome run_workload(const Topology& topology, const ServiceSetup& setup,
                                           const WorkloadRun& run, WeightService& service,
                                           const std::function<void(double)>& progress = {});

}  // namespace holdfast::sim
