// What happens to a world: what its users call and what breaks, all of it drawn beforehand from the
// seed, so that parts can be left out (recipe.hpp) while the rest stays as it was.
//
// A pure function of seed and world.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/catalog/calls.hpp"
#include "core/storm/control_network.hpp"
#include "core/storm/world.hpp"

namespace holdfast::storm {

// Calls of users. Group calls are made by all members, a little apart.
enum class TaskKind : std::uint8_t {
  Publish,    // group: unpublish what is there, write new bytes, publish
  Unpublish,  // group: what it holds
  Fetch,      // group; left out while an earlier one is open
  Cancel,     // one worker: its open fetch
  Withdraw,   // one worker
  Retain,     // one worker
  Release,    // one worker
  Installed,  // one worker
  Lineage,    // one worker
  Leave,      // one worker
};
inline constexpr std::size_t kTaskKinds = 10;
[[nodiscard]] const char* to_string(TaskKind kind);

struct Task {
  TaskKind kind = TaskKind::Fetch;
  Time at;
  GroupId group;
  WorkerId worker;            // calls of one worker
  Version version;            // Publish, Withdraw, Retain, Release, Installed
  std::uint32_t variant = 0;  // Publish: other bytes under the same number, 0 or 1
  FetchCall fetch;
  // This member (by rank) fetches something else, or does not publish.
  std::uint32_t odd_member = 0xffffffffU;
  OnDeadline on_deadline = OnDeadline::Fail;
  Retention retention;
  std::uint32_t groups = 1;  // Installed
  Time patience;             // deadline - now
  Time apart;                // between members
};

enum class FaultKind : std::uint8_t {
  WorkerCrash,       // comes back empty after `lasts`, if `returns`
  DomainCrash,       // all workers of the host or rack
  CoordinatorCrash,  // amid its commands; a new one at once or after `lasts`
  Zombie,            // a new coordinator takes over while the old one still sends for `lasts`
  ControlCut,        // worker and coordinator, one way or both
  DataCut,           // worker to other, one way or both
  Island,            // all of a domain from all others and the coordinator
  Stall,             // a worker's port serves nothing for `lasts`
  SlowPort,
  Corrupt,         // bytes in flight
  ControlWeather,  // loss, doubling, lateness
  DataWeather,
};
inline constexpr std::size_t kFaultKinds = 12;
[[nodiscard]] const char* to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::WorkerCrash;
  Time at;
  std::uint32_t steps = 0;  // and then after so many steps of the machines
  Time lasts;
  WorkerId worker;
  WorkerId other;
  DomainId domain;
  bool returns = true;
  std::uint32_t ways = 3;    // bits: 1 there, 2 back
  std::uint32_t amount = 0;  // Corrupt: reads to skip; SlowPort: divisor; crash: commands sent
  ControlFaults control;     // ControlWeather, DataWeather
};

struct Script {
  std::vector<Task> tasks;    // ascending by time
  std::vector<Fault> faults;  // ascending by time
  Time calm;                  // then all faults end
};

[[nodiscard]] Script make_script(const World& world);

}  // namespace holdfast::storm
