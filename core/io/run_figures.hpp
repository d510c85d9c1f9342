// The figures of a run that follow from its demand, bound and completion times.
#pragma once

#include <optional>
#include <span>

#include "core/gpu_time.hpp"
#include "core/io/results.hpp"

namespace holdfast {

// How long GPUs of rollout groups wait in an in-place update, and how long any plan makes them. A
// group waits until its last shard is complete, each of its GPUs with it; a group that misses
// nothing does not wait. A shadow fetch overlaps generation, and its final switch takes no time
// here.
struct Stall {
  GpuTime rollout;
  GpuTime bound;
  // bound / rollout; nothing where nobody waited.
  [[nodiscard]] std::optional<double> fraction() const;
};

// `completed` by worker. O(workers).
[[nodiscard]] Stall stall_of(const ResultsContext& context, std::span<const Time> completed);

// The least that any plan moves: what each receiver misses; what the receivers of each host miss
// and nobody in that host may serve, each block once; the same for each datacenter. O(sum of the
// classes' holders and receivers).
[[nodiscard]] PayloadBytes minimum_bytes(const Topology& topology, const Demand& demand);

}  // namespace holdfast
