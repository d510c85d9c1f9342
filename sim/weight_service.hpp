// What a workload asks of whoever moves its weights: whole groups publish, fetch and leave, and
// hear how that ended. Holdfast's protocol (protocol_service.hpp) and the baselines implement it,
// so that one driver compares them on the same cluster, with the same faults.
//
//   class Loop final : public ServiceObserver { ... };
//   service.run(loop, [&] {                        // at time zero
//     service.start(trainer);
//     service.call(trainer, PublishCall{{1, 7}}, seconds(60));
//     service.call_at(seconds(300), [&] { service.stop(); });
//   });
//
// Time. `call_at` and the observer's functions run in virtual time, one after the other, never
// inside another call of the service; from all of them the service may be called. Deadlines are
// absolute. Deterministic: the same calls give the same run, bit for bit. One thread, one run in
// the life of an object; with SimGrid beneath, one object in the life of a process.
//
// Groups start and stop at run time. A group that is started anew begins empty: its workers hold
// nothing and are not who they were.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/catalog/calls.hpp"
#include "core/catalog/model_space.hpp"
#include "core/plan/plan.hpp"
#include "core/workload/faults.hpp"
#include "sim/sim_network.hpp"

namespace holdfast::sim {

// The workers that hold one copy together. They are numbered through all groups in order, each
// group's by rank; the workers of `memories` follow.
struct ServiceGroup {
  std::string name;  // for messages
  SpaceId space;
  LayoutNumber layout = 0;
  std::vector<NodeId> members;  // endpoint by rank, in no other group
  bool trainer = false;
  bool reliable = true;     // false: spot
  std::uint32_t slots = 1;  // buffers of a worker: 2 where Shadow is used
};

// Host memory in which copies may be kept for others. Runs from the start, unless a fault stops it.
struct ServiceMemory {
  NodeId node;  // its endpoint, in no group
  SpaceId space;
  bool reliable = true;
  Bytes budget;
};

struct ServiceSetup {
  std::vector<std::shared_ptr<const ModelSpace>> spaces;  // by SpaceId
  std::vector<ServiceGroup> groups;                       // by GroupId
  std::vector<ServiceMemory> memories;
};

using GroupCall = std::uint64_t;  // numbered from 1 through the run

// Hears what happens. Times are the service's `now`.
class ServiceObserver {
 public:
  ServiceObserver() = default;
  ServiceObserver(const ServiceObserver&) = delete;
  ServiceObserver& operator=(const ServiceObserver&) = delete;
  virtual ~ServiceObserver() = default;

  // Once for each call. Ok if it was for every member that lives; else the end of the first member
  // (by rank) for whom it was not; Stopped if none is left.
  virtual void call_ended(GroupId group, GroupCall call, const CallResult& result) = 0;
  // The version that every member has fetched and runs, or nothing: not usable (overwritten, or a
  // member is gone). Told when it changes. Who publishes a version does not run it.
  virtual void runs_changed(GroupId group, const std::optional<Version>& version) = 0;
  // A verified block; once for each block that moved.
  virtual void block_delivered(WorkerId receiver, BlockId block, WorkerId source) = 0;
  // An update or a part of one was planned; nothing: it could not be, `problem` says why. Baselines
  // that decide while they run make no plan.
  virtual void planned(const Demand& demand, const Plan* plan, const std::string& problem) = 0;
  // `by` noticed that `lost` is gone or out of reach; an invalid `by`: the coordinator did.
  virtual void fault_detected(WorkerId lost, WorkerId by) = 0;
};

class WeightService {
 public:
  WeightService() = default;
  WeightService(const WeightService&) = delete;
  WeightService& operator=(const WeightService&) = delete;
  virtual ~WeightService() = default;

  // Runs until `stop`, or until nothing can happen any more. `begin` is called first, at time zero.
  // Throws Error(Unsupported) where the network cannot represent the topology.
  virtual void run(ServiceObserver& observer, std::function<void()> begin) = 0;
  virtual void stop() = 0;
  [[nodiscard]] virtual Time now() const = 0;
  // Calls `what` once at `at` (now, if that is past).
  virtual void call_at(Time at, std::function<void()> what) = 0;

  // --- Members ---
  // Every member that does not run starts, empty; one that a fault stops, once that has ended.
  // Nothing happens where all run.
  virtual void start(GroupId group) = 0;
  // Gone without a word, every member. Its open calls end with Stopped.
  virtual void kill(GroupId group) = 0;
  // Every member runs.
  [[nodiscard]] virtual bool running(GroupId group) const = 0;

  // --- Calls, for whole groups ---
  // Publish, unpublish, fetch, cancel and leave are made by every member at once; the others by the
  // first member that runs. A cancel ends the group's open fetch, whatever number it names. After a
  // leave that ended Ok the group does not run; start it again to have it back. Where no member
  // runs the call ends with Stopped. What a baseline cannot do ends with Stopped and a reason.
  virtual GroupCall call(GroupId group, const Call& call, Time deadline) = 0;

  // --- Faults ---
  // At once, whatever its time says. Workers that it stops are killed, those that it starts again
  // begin empty, if their group was started. A link that is limited to nothing carries neither
  // bytes nor messages.
  virtual void apply(const FaultChange& change) = 0;

  // --- Figures ---
  [[nodiscard]] virtual const SimNetwork::Moved& moved() const = 0;
  [[nodiscard]] virtual std::vector<SimNetwork::Use> channel_use(Time makespan) const = 0;
  [[nodiscard]] virtual FlowDriver driver() const = 0;
};

}  // namespace holdfast::sim
