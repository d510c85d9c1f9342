// GPU-seconds in which GPUs do no work for want of weights, in the three parts of the results:
//
//   rollout   not generating for want of a runnable version, or because the buffer is overwritten
//   trainer   inside publish and unpublish
//   offload   held until a copy has left for another place
//
// A GPU is counted once at any time: where waits of several parts overlap, offload counts before
// trainer before rollout (what is the reason before what follows from it). A GPU that died or left
// stops counting, so only waits inside the group's presence count. A shadow fetch overlaps
// generation: of it, only its final copy is a wait.
//
//   GroupTime group{8, {{seconds(0), seconds(100)}}, {{StallPart::Rollout, seconds(3),
//   seconds(5)}}}; stall_parts({&group, 1}).rollout.seconds();  // 16
//
// Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/gpu_time.hpp"
#include "core/units.hpp"

namespace holdfast {

enum class StallPart { Rollout, Trainer, Offload };

struct Interval {
  Time from;
  Time to;  // not before `from`
};

struct Wait {
  StallPart part = StallPart::Rollout;
  Time from;
  Time to;
};

// One replica: its GPUs wait together.
struct GroupTime {
  std::uint64_t gpus = 0;
  std::vector<Interval> present;  // while it lives; in any order, may touch and overlap
  std::vector<Wait> waits;        // likewise
};

struct StallParts {
  GpuTime rollout;
  GpuTime trainer;
  GpuTime offload;
  [[nodiscard]] GpuTime total() const;
};

// O(n log n) in the intervals of each group.
[[nodiscard]] StallParts stall_parts(std::span<const GroupTime> groups);

}  // namespace holdfast
