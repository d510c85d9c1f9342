// The catalog: who holds which version, who may read from whom, what is decided for whom. A passive
// state machine: events in, commands out, virtual time only. It never plans inside a step: it asks
// (MakePlan, MakeRepair, MakeJoin) and goes on when the answer comes; what joined or died meanwhile
// is mended by a repair of the plan.
//
// Its state is soft. A new coordinator starts Rebuilding: for `rebuild_time` it only listens to
// Hellos, then takes the epoch after the largest that was reported and goes on from what the
// workers said. Running transfers are adopted with their plans and grants.
//
// Life of a fetch (of a group, its n-th):
//   Collecting  until every member asked, with equal arguments
//   Securing    InPlace, of a version that is retained: until enough copies exist elsewhere
//   Clearing    until the old version has drained on every member
//   Waiting     until a plan is made and the sources have granted
//   Filling     until every member is complete, then FetchDone{Ok} to all
// At its deadline, or with a member's death, it ends: members' transfers are stopped first.
//
// Complexity: O(1) amortised an event beside the size of what it names; expiry O(log workers) a
// worker; a batch of fetches O(members + holders x spans) to make its demand; retention
// O(workers + shards) each time it is judged, at most once in `judge_interval`.
// Deterministic. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/catalog/frames.hpp"
#include "core/plan/holdings.hpp"
#include "core/plan/join.hpp"
#include "core/plan/repair.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

struct CoordinatorConfig {
  Time rebuild_time = seconds(2);
  Time detection = seconds(3);    // silence after which a worker is dead
  Time gather = milliseconds(5);  // fetches of one version are collected that long
  Time judge_interval = milliseconds(20);
  Time retry_interval = milliseconds(500);  // where there was no plan
  Time plan_deadline = seconds(60);         // for the planner to answer; then it is asked again
  Time forget_deadline = seconds(30);       // host memory that is freed: for its readers
  bool serve_from_spot = true;
  bool verify = true;
  std::uint32_t most_versions = 10'000;  // of a space
  SessionConfig session;
};

// --- Events -----------------------------------------------------------------------------------
struct FromWorker {
  WorkerId worker;
  ToCoordinator frame;
};
struct PlanMade {
  PlanNumber id = 0;
  // Nothing: there is no plan (`problem` says why).
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const UpdateTables> tables;
  std::string problem;
};
// The answer to MakeRepair and to MakeJoin.
struct RepairMade {
  PlanNumber id = 0;
  std::uint64_t request = 0;
  std::shared_ptr<const Demand> demand;  // of a join: with the joiners among the receivers
  std::vector<LiveEdge> edges;           // new parents, ready to carry out
  std::vector<WorkerId> unmended;        // who found none: what they miss is planned anew
};
struct CoordinatorTimePassed {};
using CoordinatorEvent = std::variant<FromWorker, PlanMade, RepairMade, CoordinatorTimePassed>;

// --- Commands ---------------------------------------------------------------------------------
struct SendToWorker {
  WorkerId worker;
  ToWorker frame;
};
struct MakePlan {
  PlanNumber id = 0;
  SpaceId space;
  std::shared_ptr<const Demand> demand;
  std::shared_ptr<const std::vector<std::uint64_t>> digests;  // of all blocks
};
// Orphans, and the children of the lost, get new parents; nobody else is moved.
struct MakeRepair {
  PlanNumber id = 0;
  std::uint64_t request = 0;
  std::shared_ptr<const Demand> demand;
  std::shared_ptr<const Plan> plan;  // as it is carried out now
  std::shared_ptr<const UpdateTables> tables;
  RepairTask task;
};
// Late receivers of what a plan carries anyway are attached where room is left; nobody is moved.
struct MakeJoin {
  PlanNumber id = 0;
  std::uint64_t request = 0;
  std::shared_ptr<const Demand> demand;
  std::shared_ptr<const Plan> plan;  // as it is carried out now
  std::shared_ptr<const UpdateTables> tables;
  JoinTask task;
  std::shared_ptr<const Holdings> verified;
};
using CoordinatorCommand = std::variant<SendToWorker, MakePlan, MakeRepair, MakeJoin>;

// --- The machine ------------------------------------------------------------------------------
class Coordinator {
 public:
  // `roster`: the endpoint of each worker, by WorkerId, whether it runs or not. `spaces`: by
  // SpaceId. The topology must outlive the coordinator.
  Coordinator(const Topology& topology, std::vector<NodeId> roster,
              std::vector<std::shared_ptr<const ModelSpace>> spaces,
              const CoordinatorConfig& config);
  ~Coordinator();
  Coordinator(Coordinator&&) noexcept;
  Coordinator& operator=(Coordinator&&) noexcept;

  // Appends commands to `out`, to be carried out in order; returns when to step again at the
  // latest. `now` never falls. The first step starts the rebuild.
  Time step(const CoordinatorEvent& event, Time now, std::vector<CoordinatorCommand>& out);

  [[nodiscard]] bool rebuilding() const;
  [[nodiscard]] Epoch epoch() const;

  // For `holdfast status`, tests and the fuzzer.
  struct VersionView {
    SpaceId space;
    Version version;
    Hash128 root;
    bool published = false;  // every shard of at least one group
    bool withdrawn = false;
    bool fetchable = false;
    Retention retention;
    std::uint32_t safe = 0;         // copies in different domains, if retained
    std::string reason;             // why it is not safe and nothing runs for it
    std::vector<WorkerId> holders;  // complete, offered
    std::vector<WorkerId> filling;
    std::vector<WorkerId> hidden;
  };
  struct GroupView {
    GroupId group;
    Generation generation = 0;
    std::uint64_t fetches = 0;  // n of the last one
    bool open = false;          // it is not over
    std::string phase;          // "Collecting" ...
    std::optional<Version> runs;
  };
  [[nodiscard]] std::vector<VersionView> versions() const;
  [[nodiscard]] std::vector<GroupView> groups() const;
  [[nodiscard]] bool alive(WorkerId worker) const;
  [[nodiscard]] std::size_t grants() const;
  [[nodiscard]] std::size_t open_transfers() const;

  friend std::vector<std::string> broken_invariants(const Coordinator& coordinator, Time now);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// The fifteen invariants as far as the coordinator can see them, each with its number in the text.
// Empty: all hold. O(state). Checked after every step in debug builds, in the fuzzer and in tests.
[[nodiscard]] std::vector<std::string> broken_invariants(const Coordinator& coordinator, Time now);

}  // namespace holdfast
