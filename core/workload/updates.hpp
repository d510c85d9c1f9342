// The updates of a run, cut out of its fetches, with the bound of each.
//
// An update of a version begins with a request for it while nobody waits for it, and ends when
// nobody waits; a later request begins another. Its bound: no plan completes a receiver or domain S
// earlier than its first request plus what S misses over the capacity into S plus latency, counted
// from the update's first request a0. Bounds are for nominal capacities and holders; faults only
// add time, so each stays a lower bound.
//
// Pure functions; O(n log n) in the fetches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/gpu_time.hpp"
#include "core/plan/demand.hpp"

namespace holdfast {

// One fetch of one group (a replica that receives).
struct FetchRecord {
  Version version;
  std::uint32_t group = 0;  // the replica's number in the run
  std::uint64_t gpus = 0;
  std::uint32_t workers = 0;  // that receive; GPUs or host memories
  bool in_place = true;       // otherwise into a shadow, beside generation
  bool generates = true;      // a rollout replica: its waiting is stall
  Time requested;
  Time ended;              // complete, failed, or the end of the run
  bool completed = false;  // by then; otherwise it failed or was still running
  Time bound;              // of this group alone, from its own request
};

// What no plan can beat for several receivers together: a domain, or all of them.
struct JointBound {
  Version version;
  Time first_request;  // of any of its receivers; tells the update to which it belongs
  Time bound;          // from that request
};

enum class BoundKind {
  Static,   // all asked at once, and nothing failed
  Nominal,  // requests at several times, or faults
};

[[nodiscard]] const char* to_string(BoundKind kind);  // "static", "nominal"

struct UpdateFigures {
  Version version;
  Time first_request;
  std::optional<Time> last_completion;  // nothing where none completed
  Time ended;                           // when nobody waited any more
  Time bound;                           // from the first request
  BoundKind bound_kind = BoundKind::Static;
  std::uint32_t completed = 0;  // replicas that received all
  std::uint32_t failed = 0;     // or not
  std::uint64_t workers = 0;    // of all of them
  bool in_place = true;         // all of its fetches
  // Last completion after the first request; nothing where none completed.
  [[nodiscard]] std::optional<Time> makespan() const;
};

// By first request, then version. `faults`: when something failed or was lost, in any order. A
// joint bound counts for the update of its version that is open at its first request, and is
// ignored if some fetch of that update failed (its receivers may no longer be those of the bound).
[[nodiscard]] std::vector<UpdateFigures> updates_of(std::span<const FetchRecord> fetches,
                                                    std::span<const JointBound> joint,
                                                    std::span<const Time> faults);

// Sums over the updates with a completion: a run's `makespan_s` and `bound_s`.
struct UpdateSums {
  Time makespan;
  Time bound;
  // bound / makespan; nothing where nothing was completed.
  [[nodiscard]] std::optional<double> fraction() const;
};
[[nodiscard]] UpdateSums sums_of(std::span<const UpdateFigures> updates);

// How long GPUs waited in completed in-place fetches of rollouts, and how long any plan makes them.
struct FetchStall {
  GpuTime waited;
  GpuTime bound;
  // bound / waited; nothing where nobody waited.
  [[nodiscard]] std::optional<double> fraction() const;
};
[[nodiscard]] FetchStall fetch_stall(std::span<const FetchRecord> fetches);

}  // namespace holdfast
