// The inside of ProtocolService. Included by its sources only.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/catalog/planning.hpp"
#include "core/catalog/shard_placement.hpp"
#include "core/workload/faults.hpp"
#include "sim/control_ways.hpp"
#include "sim/group_calls.hpp"
#include "sim/protocol_service.hpp"
#include "sim/worker_life.hpp"

namespace holdfast::sim {

struct ProtocolService::State {
  struct Worker {
    NodeId node;
    WorkerCard card;
    bool wanted = false;          // runs unless a fault stops it
    Incarnation incarnation = 0;  // the last one
    std::unique_ptr<WorkerLife> life;
    std::optional<Version> runs;
    std::vector<WorkerId> missed;  // sources whose loss it has told in this life
  };
  // A call that waits until the members know of each other.
  struct HeldCall {
    GroupCall number = 0;
    Call what;
    Time deadline;
    std::vector<WorkerId> who;
  };
  struct Group {
    std::vector<WorkerId> members;
    bool trainer = false;
    std::optional<Version> runs;
    std::vector<HeldCall> held;  // in the order in which they were made
  };

  State(const Router& machine, ServiceSetup service, const ProtocolOptions& settings);

  // protocol_service.cpp: members and faults
  void begin(std::function<void()> users);
  void start_worker(WorkerId worker);
  // What it had is gone; nobody is told.
  void end_life(WorkerId worker);
  void pump(WorkerId worker);
  void look_at_runs(WorkerId worker, const std::optional<Version>& version);
  void apply(const FaultChange& change);
  GroupCall call(GroupId group, Call call, Time deadline);
  [[nodiscard]] bool joined(const std::vector<WorkerId>& who) const;
  void release_calls(GroupId group);
  void make(const HeldCall& call);
  void told(std::optional<GroupCalls::Ended> ended);
  // Tells the observer what has happened since; then takes away who has left.
  void settle();
  void check(const std::vector<std::string>& wrong, const std::string& where);

  // protocol_messages.cpp: the coordinator and its frames
  void start_coordinator();
  void stop_coordinator();
  void send_up(WorkerId worker, ToCoordinator frame);
  void send_down(WorkerId worker, const ToWorker& frame);
  void step_coordinator(const CoordinatorEvent& event);
  void carry_out(const CoordinatorCommand& command);
  void ask_planner(const CoordinatorCommand& question);
  void arm();
  void listen(WorkerId worker, const ToCoordinator& frame);
  void look_for_expiry();
  [[nodiscard]] bool may_read(WorkerId source, WorkerId reader) const;
  void notify(std::function<void(ServiceObserver&)> what) { notices.push_back(std::move(what)); }

  const Router& router;
  ServiceSetup setup;
  ProtocolOptions options;
  std::vector<Worker> workers;
  std::vector<Group> groups;
  std::vector<NodeId> roster;
  std::vector<WorkerId> worker_at;  // by node; invalid: none
  std::optional<SimNetwork> network;
  ShardPlacements placements;
  ControlWays ways;
  ActiveFaults faults;
  GroupCalls calls;

  std::unique_ptr<Coordinator> coordinator;
  std::uint64_t coordinator_life = 0;
  Time coordinator_next = Time::never();
  Time armed = Time::never();
  std::vector<CoordinatorCommand> commands;  // scratch
  std::vector<WorkerId> suspects;

  ServiceObserver* observer = nullptr;
  std::deque<std::function<void(ServiceObserver&)>> notices;
  std::vector<WorkerId> leaving;  // their leave has ended
  bool settling = false;
  std::vector<std::string> broken;
  Traffic traffic;
};

}  // namespace holdfast::sim
