// Holdfast's own protocol as a service: one Coordinator, and an Agent for each worker, unmodified,
// over a SimNetwork.
//
// What is simulated. Frames between workers and the coordinator are timers with the latency of
// their way; they are lost where there is none, and with whoever is dead when they would arrive. A
// plan is ready `planning_time` after it was asked for, whatever it takes here, and plans know
// nothing of faults: the topology is nominal to them. A coordinator that stops loses everything;
// one that starts is new and rebuilds. Plans that are made for one that died are lost with it.
// The processes of a group wait for each other: a call is made when those of its members that run
// have a session each, in one generation of the group, or at its deadline.
// Users' code, write and kernel times are the workload's.
//
// Deterministic. Complexity: as Coordinator, Agent and SimNetwork, O(log events) each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/catalog/agent.hpp"
#include "core/catalog/coordinator.hpp"
#include "core/engine/worker_engine.hpp"
#include "core/plan/planner.hpp"
#include "core/topology/router.hpp"
#include "sim/weight_service.hpp"

namespace holdfast::sim {

// Who may be read from: nothing else than a filter on what is planned. Anything but Anyone stands
// for a baseline, see store_service.hpp: plans have no alternates then, and who loses its
// source is planned for anew.
enum class Sources {
  Anyone,    // whoever holds or receives
  Trainers,  // members of groups that train
  Stores,    // store groups read from trainers, everybody else from store groups
};

struct ProtocolOptions {
  CoordinatorConfig coordinator;
  AgentConfig agent;
  EngineConfig engine;
  Policy policy = Policy::Auto;
  PlanOptions plan;
  Time planning_time = milliseconds(20);
  NodeId coordinator_at;  // an endpoint of its host; invalid: the first member of the first group
  Sources sources = Sources::Anyone;
  std::vector<GroupId> stores;  // with Sources::Stores
  // `links` is always PlatformLinks::All, `block` is filled in.
  NetworkOptions network;
  Meters meters;
  // After each event the invariants of whoever was stepped are checked: O(state) an event, for
  // tests. What does not hold is in `broken`.
  bool check_invariants = false;
};

class ProtocolService final : public WeightService {
 public:
  // The router must outlive the service. Throws Error(BadValue) where a group has not as many
  // members as its layout has ranks, a space is unknown, or an endpoint is named twice.
  ProtocolService(const Router& router, ServiceSetup setup, const ProtocolOptions& options);
  ~ProtocolService() override;

  void run(ServiceObserver& observer, std::function<void()> begin) override;
  void stop() override;
  [[nodiscard]] Time now() const override;
  void call_at(Time at, std::function<void()> what) override;
  void start(GroupId group) override;
  void kill(GroupId group) override;
  [[nodiscard]] bool running(GroupId group) const override;
  GroupCall call(GroupId group, const Call& call, Time deadline) override;
  void apply(const FaultChange& change) override;
  [[nodiscard]] const SimNetwork::Moved& moved() const override;
  [[nodiscard]] std::vector<SimNetwork::Use> channel_use(Time makespan) const override;
  [[nodiscard]] FlowDriver driver() const override;

  // As `kill` and `start`, for one worker or the coordinator.
  void kill_worker(WorkerId worker);
  void start_worker(WorkerId worker);
  void stop_coordinator();
  void start_coordinator();

  // Null while it does not run.
  [[nodiscard]] const Coordinator* coordinator() const;
  [[nodiscard]] const Agent* agent(WorkerId worker) const;
  [[nodiscard]] SimNetwork& network();
  // Invariants that did not hold, with time and place: the first 20.
  [[nodiscard]] const std::vector<std::string>& broken() const;

  struct Traffic {
    std::uint64_t to_coordinator = 0;  // frames that arrived
    std::uint64_t to_workers = 0;
    std::uint64_t lost = 0;
    std::uint64_t plans = 0;
    std::uint64_t repairs = 0;
  };
  [[nodiscard]] const Traffic& traffic() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::sim
