// The loops of workload_run.hpp as a state machine that hears a WeightService and tells it what to
// do. Rules, beside those of workload_run.hpp
//   1. A replica generates while it runs a version, no in-place fetch of it is open, and, in a
//      synchronous loop, the trainers wait for a batch and the version is the latest.
//   2. A group of which a member is gone is broken: what it had begun is lost, it counts for
//      nothing, and it asks anew when all members are back.
//   3. Trainers act together. One that is gone is left out, and takes part again when it publishes
//      next; while none is there the step waits.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/workload/rollouts.hpp"
#include "sim/workload_recorder.hpp"
#include "sim/workload_run.hpp"

namespace holdfast::sim {

class WorkloadDriver final : public ServiceObserver {
 public:
  // All of it must outlive the driver.
  WorkloadDriver(const Topology& topology, const ServiceSetup& setup, const WorkloadRun& run,
                 WeightService& service, std::function<void(double)> progress);

  // Runs the service to the end.
  [[nodiscard]] WorkloadOutcome run();

  void call_ended(GroupId group, GroupCall call, const CallResult& result) override;
  void runs_changed(GroupId group, const std::optional<Version>& version) override;
  void block_delivered(WorkerId receiver, BlockId block, WorkerId source) override;
  void planned(const Demand& demand, const Plan* plan, const std::string& problem) override;
  void fault_detected(WorkerId lost, WorkerId by) override;

 private:
  enum class CallKind { Publish, Unpublish, Fetch, Leave, Retain, Release };
  struct OpenCall {
    CallKind kind = CallKind::Fetch;
    Version version;
  };
  struct Member {
    bool started = false;  // between its start and its end
    bool broken = false;
    bool leaving = false;
    bool draining = false;  // begins no rollouts, to fetch when all have ended
    std::optional<Version> runs;
    std::optional<GroupCall> fetch;
    std::optional<Version> asked;  // what the fetch is for
    std::uint32_t attempts = 0;    // for `tried`
    Version tried;
    bool holds = false;  // trainers: a version that is not unpublished
    std::optional<RolloutSlots> slots;
    std::uint64_t timer = 0;  // of `slots`: those of older numbers are void
  };
  enum class Step { Publishing, Waiting, Training, Unpublishing, Overwriting, Done };
  struct Update {  // one that is going on, for faults that strike at a share of it
    std::uint32_t number = 0;
    std::uint64_t wanted = 0;  // bytes
    std::uint64_t arrived = 0;
    std::uint32_t waiting = 0;  // groups
  };

  [[nodiscard]] Member& at(GroupId group) { return members_[group.index()]; }
  [[nodiscard]] const WorkloadGroup& plays(GroupId group) const {
    return run_.groups[group.index()];
  }
  [[nodiscard]] bool is_trainer(GroupId group) const;
  [[nodiscard]] bool there(const Member& member) const { return member.started && !member.broken; }
  [[nodiscard]] bool has_latest(const Member& member) const;
  [[nodiscard]] bool gave_up(const Member& member) const;
  GroupCall call(GroupId group, CallKind kind, const Version& version, const Call& what,
                 Time deadline);

  // --- The trainers' step: workload_steps.cpp
  void publish();
  void publish_ended(GroupId group, const Version& version, const CallResult& result);
  void published();
  void try_training();
  void unpublish();
  void unpublish_ended(GroupId group, const Version& version, const CallResult& result);
  void unpublished();
  void keep(const Version& version);
  void train_again();
  [[nodiscard]] std::vector<GroupId> trainers() const;
  void finished(std::uint32_t rollouts, const Version& version);

  // --- Receivers
  void consider(GroupId group);
  void consider_all();
  void fetch(GroupId group);
  void fetch_ended(GroupId group, const CallResult& result);
  [[nodiscard]] bool staged(GroupId group);
  void close_update(const Member& member);

  // --- Generation
  void look_at_generation(GroupId group);
  void refill(GroupId group);
  void tick(GroupId group);
  void lose_rollouts(GroupId group);

  // --- Coming, going, failing
  void begin();
  void start(GroupId group);
  void end(GroupId group);  // it is there no more
  void member_event(const MemberEvent& event);
  void leave(GroupId group, Time gone);
  void leave_ended(GroupId group, const CallResult& result);
  void schedule(const std::vector<FaultChange>& changes, Time from);
  void apply(const FaultChange& change);
  void look_at_members(GroupId group);
  void strike(std::uint32_t update);
  void look_for_end();
  void stop(std::optional<std::string> failure);

  const Topology& topology_;
  const ServiceSetup& setup_;
  const WorkloadRun& run_;
  WeightService& service_;
  std::function<void(double)> progress_;
  WorkloadRecorder recorder_;
  std::vector<Member> members_;
  std::vector<std::uint32_t> group_at_;  // by node
  std::map<GroupCall, OpenCall> calls_;
  Step step_ = Step::Publishing;
  bool step_waits_ = false;                          // for a trainer
  std::uint32_t step_calls_ = 0;                     // of trainers that are open
  std::uint32_t step_done_ = 0;                      // that ended well
  Version next_{1, 1};                               // that is published next, or now
  std::optional<Version> latest_;                    // that is published
  std::map<std::uint64_t, std::uint64_t> finished_;  // rollouts, by number of the version
  std::uint64_t to_begin_ = 0;  // of a synchronous loop's batch without partial rollouts
  std::map<Version, Update> updates_;
  std::uint32_t update_numbers_ = 0;
  std::vector<char> struck_;  // by triggered fault
  std::deque<Version> kept_;  // versions that are retained
  std::uint64_t rollouts_finished_ = 0;
  std::uint64_t rollouts_stale_ = 0;
  std::uint64_t rollouts_lost_ = 0;
  std::uint64_t deliveries_ = 0;
  double fraction_ = 0;  // of the run, for `progress`
  bool stopped_ = false;
  std::optional<std::string> failure_;
};

}  // namespace holdfast::sim
