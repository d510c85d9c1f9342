// A whole run under one clock: workers' lives on a network, a coordinator that may die at
// any command, a planner that takes its time, users and faults as the script says.
//
// One thing happens at a time, in one order: what is due at the earliest time; of equal times first
// what was scheduled (tasks, faults, plans), then frames, then the data network, then the
// coordinator, then workers by number. Deterministic: `trace` of two runs of one recipe is equal.
//
// The run ends when its script is over, the network has healed, everybody has fetched once more,
// and everything has come to rest; or as soon as `stop` says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "core/storm/control_network.hpp"
#include "core/storm/data_network.hpp"
#include "core/storm/life.hpp"
#include "core/storm/recipe.hpp"
#include "core/storm/script.hpp"
#include "core/storm/users.hpp"
#include "core/storm/watch.hpp"
#include "core/topology/router.hpp"

namespace holdfast::storm {

class Cluster final : public Stage, private Desk {
 public:
  // All of it is borrowed and must outlive the cluster.
  Cluster(const World& world, const Script& script, const Recipe& recipe, DataNetwork& network,
          std::vector<Watcher*> watchers);
  ~Cluster() override;

  void run(const std::function<bool()>& stop);

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  // Time stood still: something asks to be stepped again and again.
  [[nodiscard]] bool stuck() const { return at_once_ > kMostAtOnce; }
  // Of everything that happened, in order.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }

  [[nodiscard]] const World& world() const override { return world_; }
  [[nodiscard]] Time now() const override { return now_; }
  [[nodiscard]] const Agent* agent(WorkerId worker) const override;
  [[nodiscard]] std::span<const std::byte> memory(WorkerId worker, SlotNumber slot) const override;
  [[nodiscard]] SlotNumber slot_of(WorkerId worker, RegionId region) const override;
  [[nodiscard]] const Coordinator* coordinator() const override { return coordinator_.get(); }
  [[nodiscard]] bool reachable(WorkerId worker) const override;

 private:
  using Action = std::function<void()>;
  struct Planned {
    Time at;
    std::uint64_t order = 0;
    std::shared_ptr<Action> action;
    friend bool operator>(const Planned& a, const Planned& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  // A fault that waits for a number of steps.
  struct Fuse {
    std::uint64_t step = 0;
    const Fault* fault = nullptr;
  };

  // cluster.cpp
  void schedule(Time at, Action action);
  void load();
  void step();
  [[nodiscard]] Time next_time() const;
  void happen();
  void deliver(const Delivery& delivery);
  void step_worker(WorkerId worker, const char* event, const std::function<void(Life&)>& act);
  void step_coordinator(const CoordinatorEvent& event, const char* name, WorkerId worker);
  void carry_out(const CoordinatorCommand& command);
  void step_zombie();
  void plan(const CoordinatorCommand& command);
  void start_worker(WorkerId worker);
  void start_coordinator();
  void mark(std::uint64_t value);
  template <class Tell>
  void tell(Tell told) {
    for (Watcher* watcher : watchers_) told(*watcher);
  }

  // cluster_faults.cpp
  void light(const Fault& fault);
  void strike(const Fault& fault);
  void strike_workers(const Fault& fault);
  void strike_coordinator(const Fault& fault);
  void strike_network(const Fault& fault);
  void crash_worker(WorkerId worker, Time returns);
  void crash_coordinator();
  void cut_control(WorkerId worker, std::uint32_t ways, int by);
  void cut_data(WorkerId from, WorkerId to, int by);
  void calm_down();
  void wait_for_rest(Time since, Time least, const Action& then);
  [[nodiscard]] Time calm_at() const;
  [[nodiscard]] std::vector<WorkerId> inside(DomainId domain) const;

  // Desk
  void call(WorkerId worker, CallId id, const Call& call, Time deadline) override;
  void write(WorkerId worker, SlotNumber slot, const Content* content) override;
  void later(Time at, const Task& task, WorkerId worker) override;

  const World& world_;
  const Script& script_;
  const Recipe& recipe_;
  std::vector<Watcher*> watchers_;
  Time now_;
  std::uint64_t steps_ = 0;
  static constexpr std::uint64_t kMostAtOnce = 100'000;
  std::uint64_t at_once_ = 0;  // steps without time going on
  std::uint64_t trace_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<Planned, std::vector<Planned>, std::greater<>> agenda_;
  std::vector<Fuse> fuses_;
  bool calm_ = false;
  bool over_ = false;

  DataNetwork& network_;
  ControlNetwork control_;
  std::vector<std::uint32_t> control_cuts_;  // by worker and way: how many faults cut it
  std::vector<std::uint32_t> data_cuts_;     // by from and to

  std::vector<bool> takes_part_;  // by worker
  std::vector<std::unique_ptr<Life>> lives_;
  std::vector<Incarnation> incarnations_;  // of the last life
  std::vector<WorkerId> ready_;            // have something to poll

  std::vector<NodeId> roster_;
  std::unique_ptr<Coordinator> coordinator_;
  Time coordinator_next_;
  std::uint64_t coordinator_life_ = 0;
  std::optional<std::uint32_t> coordinator_dies_after_;  // commands
  Time coordinator_returns_;
  std::unique_ptr<Coordinator> zombie_;
  Time zombie_next_;
  Time zombie_until_;

  Router router_;
  Dice planning_dice_;
  Users users_;
  Dice scribble_;
};

}  // namespace holdfast::storm
