// A cluster on this machine: the coordinator in this process, each worker in a process of its own,
// TCP on loopback between all of them, real bytes.
//
// What happens, for each of `updates` versions: the trainers fill their buffers and publish; the
// rollouts fetch the latest, all at once; every byte that they got is verified by a rule that knows
// nothing of blocks; the trainers unpublish, and the next version follows.
//
// A worker may be killed (SIGKILL) when a share of an update's blocks has arrived. Its group is out
// of the run from then on; the others must go on.
//
// Every wait has a deadline: the calls' own, `patience` for everything else; the run ends with a
// named failure when it passes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/catalog/coordinator.hpp"
#include "core/plan/planner.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::real {

struct LocalGroup {
  std::string name;
  std::vector<WorkerId> members;  // by rank
  bool publishes = false;
  bool fetches = false;
};

// SIGKILL for one worker when so many millionths of the blocks of an update (from 1) have arrived.
struct LocalKill {
  WorkerId worker;
  std::uint32_t update = 1;
  std::uint32_t share = 500'000;
};

struct LocalRunSetup {
  const Topology* topology = nullptr;       // outlives the run
  std::vector<NodeId> roster;               // endpoint by WorkerId
  std::shared_ptr<const ModelSpace> space;  // the only one
  std::vector<WorkerCard> cards;            // by WorkerId, without addresses
  std::vector<LocalGroup> groups;
  CoordinatorConfig coordinator;
  Policy policy = Policy::Auto;
  PlanOptions plan;
  std::uint32_t updates = 1;
  std::vector<LocalKill> kills;
  Time patience = seconds(120);
  // Arguments with which this program becomes a worker: `WORKER` and `COORDINATOR` are replaced by
  // its number and the coordinator's address. The socket to this process is descriptor 3.
  std::vector<std::string> worker_arguments;
  std::function<void(const std::string&)> progress;  // lines for people; may be empty
};

struct LocalEvent {
  Time at;  // since the start
  WorkerId worker;
  std::string kind;  // "call", "runs", "failed", "killed"
  std::string text;  // "fetch 1.2: Ok: version 1.2", "1.2", "nothing"
};

struct LocalRunResult {
  std::vector<Hash128> plans;  // in the order in which they were made
  // (receiver, block, source) of each version's deliveries, by update from 1.
  std::map<std::uint32_t, std::set<std::tuple<WorkerId, BlockId, WorkerId>>> deliveries;
  std::uint64_t repeated = 0;  // blocks that a worker verified twice for one version
  std::vector<LocalEvent> events;
  std::vector<Time> update_times;     // from the first fetch of an update to its last end
  std::vector<std::string> verified;  // "rollout[0]", for each update
  std::vector<WorkerId> killed;
  std::optional<std::string> failure;
};

// One thread may call it at a time; it starts threads and processes, none of which survives it.
// Throws Error(Unsupported) where the system does not let it.
[[nodiscard]] LocalRunResult run_local(const LocalRunSetup& setup);

}  // namespace holdfast::real
