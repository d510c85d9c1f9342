// A coordinator under load: workers that obey it over a network that loses nothing, and a mix of
// what they say. Only the coordinator's own steps are timed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/catalog/coordinator.hpp"
#include "core/catalog/planning.hpp"
#include "tests/bench/large_cluster.hpp"

namespace holdfast::bench {

class CatalogLoad {
 public:
  // Groups of one host each. The first `kVersions` groups have published a version each; of the
  // others three in four receive the last one and never finish, one in four is idle.
  static constexpr std::uint32_t kVersions = 16;

  explicit CatalogLoad(std::uint32_t hosts);

  // 40 % progress, 30 % heartbeats, 20 % fetches with grants and their release, 10 % joins and
  // publishes; one event each 5 us of virtual time.
  void mixed_event();
  // The members of these many groups fall silent, the others do not; then the detection time ends.
  void silence(std::uint32_t groups);

  // Processor seconds that each step since the last call took, reading the clock included.
  [[nodiscard]] std::vector<double> take_times() { return std::exchange(times_, {}); }
  // Fetches that ended, counted on each member.
  [[nodiscard]] std::uint64_t ended() const { return ended_; }

 private:
  using WorkerSession = Session<WorkerMessage, CoordinatorMessage>;
  struct Client {
    WorkerCard card;
    Incarnation incarnation = 1;
    Generation generation = 1;
    std::unique_ptr<WorkerSession> session;  // null: says nothing but Hello
    std::map<Version, BlockSet> holds;
    PlanNumber plan = 0;  // of the last Begin
    Version filling;
  };
  struct Saying {
    WorkerId worker;
    WorkerMessage message;
  };

  void step(const CoordinatorEvent& event);
  void hello(WorkerId id);
  void heartbeat(WorkerId id);
  void say(WorkerId id, WorkerMessage message);
  void say_next(std::deque<Saying>& sayings);
  void answer_all();
  void receive(WorkerId id, const ToWorker& frame);
  void obey(WorkerId id, const CoordinatorMessage& message);
  void start_fetch(std::uint32_t group, Version version);
  void publish(WorkerId id, Version version);
  void progress();
  void fetch_event();
  void churn();
  [[nodiscard]] WorkerId member(std::uint32_t group, std::uint32_t rank) const {
    return WorkerId(group * (kGpus + 1) + rank);
  }
  [[nodiscard]] std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(random_() % n);
  }

  std::uint32_t groups_;
  std::mt19937_64 random_{1};
  Topology topology_;
  Router router_;
  std::shared_ptr<const ModelSpace> space_;
  std::vector<NodeId> roster_;
  std::vector<Client> clients_;
  Coordinator coordinator_;
  Time now_ = seconds(1);
  std::vector<double> times_;
  std::deque<Saying> answers_;                          // to what the coordinator said
  std::deque<std::pair<Time, CoordinatorEvent>> made_;  // plans, with the time when they are there
  std::vector<std::uint64_t> fetches_;                  // by group
  std::vector<std::uint32_t> unfinished_;               // by group: members that wait for FetchDone
  bool fills_ = false;                                  // receivers finish at once
  std::uint64_t calls_ = 0;
  std::uint64_t ended_ = 0;
};

}  // namespace holdfast::bench
