// What crosses the domains of a machine in a run, and which links are busy longest: the figures
// from which `holdfast compare` says what limits a run. Written to summary.json and read back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/results.hpp"
#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

enum class Direction { In, Out };

// One domain and what crosses its border in one direction.
struct DomainCrossing {
  std::string domain;
  Level level = Level::Host;
  std::string who;  // the replicas inside, where they are few: "trainer[0]"
  Bytes bytes;
  Bytes minimum;  // what must cross in any plan; zero out of a domain that others can do without
  Rate capacity;  // of all links across that are up
};

// All domains of one level in one direction.
struct LevelCrossing {
  Level level = Level::Host;
  Direction direction = Direction::In;
  std::uint64_t domains = 0;  // that something crosses into or out of
  Bytes bytes;
  Bytes minimum;
  DomainCrossing most;  // the one whose bytes take its links longest
};

// One direction of a link.
struct BusyLink {
  std::string link;
  std::string kind;  // "nic", "uplink", "wan", "nvlink", "pcie", "memory"
  Bytes bytes;
  Rate capacity;
  Rate usual;                            // the median of links that join the same kinds of nodes
  std::uint64_t streams = 0;             // edges of the plan across it; zero: not known
  Bytes largest_stream;                  // what the largest of them carries
  std::optional<Rate> stream_cap;        // most that one of them gets
  std::optional<DomainCrossing> leaves;  // the outermost domain that it leads out of
  std::optional<DomainCrossing> enters;  // and into

  // How long its bytes take: at its capacity, or its largest stream at the cap if that is longer.
  [[nodiscard]] Time busy() const;
  [[nodiscard]] bool limited_by_stream() const;
};

// The worker that verifies longest.
struct DigestLoad {
  std::string worker;
  Bytes bytes;
  Rate rate;
  [[nodiscard]] Time busy() const;
};

// How long the replicas of one group of the scenario wait in an in-place update (run_figures.hpp:
// Stall), and the bounds of each of them.
struct GroupWait {
  std::string group;  // "near"
  std::string role;   // "rollout"
  std::uint64_t replicas = 0;
  std::uint64_t gpus = 0;  // of all of them
  Time fastest;            // of the replica that is complete first
  Time slowest;
  Time least_bound;
  Time most_bound;
  double excess_gpu_s = 0;  // GPU-seconds beyond the bounds
};

struct RunDetail {
  std::uint64_t depth = 0;  // of the plan: reads one after the other
  std::vector<LevelCrossing> crossings;
  std::vector<BusyLink> busiest;     // longest first
  std::optional<DigestLoad> digest;  // nothing where blocks are not verified
  std::vector<GroupWait> waits;      // of groups that stall, in the scenario's order
};

inline constexpr std::size_t kBusiestLinks = 16;

// Bytes that any plan moves over the border of each domain (by DomainId): `in`, what its receivers
// miss and nobody in it may serve, each block once; `out`, what others miss and only it may serve.
struct MinimumCrossings {
  std::vector<Bytes> in;
  std::vector<Bytes> out;
};
// O(sum of the classes' holders and receivers x levels + domains).
[[nodiscard]] MinimumCrossings minimum_crossings(const Topology& topology, const Demand& demand);

// How groups wait; nothing for a shadow update. `completed` by worker. O(workers + replicas x
// groups).
[[nodiscard]] std::vector<GroupWait> waits_of(const ResultsContext& context,
                                              std::span<const Time> completed);

// O(links x levels + workers), and a sort of the used links.
[[nodiscard]] RunDetail detail_of(const ResultsContext& context, const MinimumCrossings& minimum,
                                  const RunRecord& run);

[[nodiscard]] const char* to_string(Direction direction);  // "in", "out"

}  // namespace holdfast
