// What fails when. A scenario's faults are rules ("rack r3 dies at 2 s", "each host of the pool
// dies once in 50 hours"); a schedule is what they come to: single changes of workers, links and
// the coordinator, each with its time.
//
//   FaultSchedule schedule = make_schedule(rules, topology, seconds(600), seed);
//   ActiveFaults now(topology);
//   for (const FaultChange& change : schedule.timed) now.apply(change);  // at change.at
//   now.share(link);  // millionths of its capacity that are left; zero: down
//
// What each kind stops:
//   worker            its process
//   host .. pod, datacenter; kill: the workers inside, and every link that ends inside
//                     partition: the links between inside and outside; those inside go on
//   nic               its links to the fabric
//   link              itself
//   coordinator       its process; what it knew is gone
// Pure and deterministic; each rule and target has a stream of random numbers of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/topology/topology.hpp"
#include "core/units.hpp"

namespace holdfast {

enum class FaultKind { Worker, Host, Rack, Pod, Datacenter, Nic, Link, Coordinator };
enum class FaultAction { Kill, Down, Slow, Flap, Partition, Crash };

[[nodiscard]] const char* to_string(FaultKind kind);      // "worker", "nic", ...
[[nodiscard]] const char* to_string(FaultAction action);  // "kill", "slow", ...
// What can happen to what: a worker is killed, a link slow, the coordinator crashes.
[[nodiscard]] bool can(FaultKind kind, FaultAction action);
[[nodiscard]] std::vector<FaultAction> actions_of(FaultKind kind);

// When a rule strikes.
struct AtTime {
  Time at;
};
struct AtTransfer {
  std::uint32_t update = 1;  // which of the run, counted from 1
  std::uint32_t share = 0;   // of the bytes of this update that have arrived, in millionths
};
struct AtRate {
  double per_hour = 0;  // of each target, while it is well
};

struct FaultRule {
  FaultKind kind = FaultKind::Worker;
  FaultAction action = FaultAction::Kill;
  // Ids of workers' and NICs' nodes, of links or of domains, by kind; none for the coordinator.
  std::vector<std::uint32_t> targets;
  std::variant<AtTime, AtTransfer, AtRate> when;
  std::uint32_t share = 0;       // Slow: what is left of the capacity, in millionths
  Time period;                   // Flap: down and up again once in this time, down first
  std::uint32_t down_share = 0;  // Flap: of the period, in millionths
  std::optional<Time> duration;  // until all is well again (a killed worker: is started again,
                                 // empty); nothing: for good
};

enum class FaultStep { Begin, End };

// One step of one fault. The links are those of its target.
struct FaultChange {
  Time at;  // in FaultSchedule::timed since the start, in Triggered since the trigger
  FaultStep step = FaultStep::Begin;
  std::uint32_t fault = 0;      // both steps of one fault have one number
  std::uint32_t rule = 0;       // index
  std::uint32_t target = 0;     // index into the rule's targets
  std::vector<NodeId> workers;  // that stop (Begin) and start again (End)
  std::vector<LinkId> links;    // that are limited to `share`, or not any more
  std::uint32_t share = 0;      // in millionths
  bool coordinator = false;     // it stops or starts again
};

struct FaultSchedule {
  std::vector<FaultChange> timed;  // ascending by time
  struct Triggered {
    AtTransfer when;
    std::vector<FaultChange> changes;  // ascending by time
  };
  std::vector<Triggered> triggered;
};

// Changes that begin below `horizon`, with their ends. A longer horizon leaves earlier changes as
// they are. At most `kMostFaultChanges`: throws Error(LimitExceeded) for rates and flaps that give
// more. O(changes x size of a target).
inline constexpr std::size_t kMostFaultChanges = 1'000'000;
[[nodiscard]] FaultSchedule make_schedule(std::span<const FaultRule> rules,
                                          const Topology& topology, Time horizon,
                                          std::uint64_t seed);

// Faults that overlap: a link has the least share that any of them leaves, a worker or the
// coordinator runs when none of them stops it.
class ActiveFaults {
 public:
  explicit ActiveFaults(const Topology& topology);
  // O(log active faults) for each worker and link of the change. Precondition: an End follows its
  // Begin.
  void apply(const FaultChange& change);
  [[nodiscard]] bool stopped(NodeId worker) const { return stops_[worker.index()] > 0; }
  [[nodiscard]] std::uint32_t share(LinkId link) const;  // in millionths
  [[nodiscard]] bool coordinator_stopped() const { return coordinator_ > 0; }

 private:
  std::vector<std::uint32_t> stops_;                // by node: faults that stop it
  std::vector<std::vector<std::uint32_t>> shares_;  // by link, ascending
  std::uint32_t coordinator_ = 0;
};

}  // namespace holdfast
