// The memory in which a worker's blocks lie: digests, gathers and scatters of ranges, which
// complete through `poll` like reads do. Host, CUDA and simulated memories implement it.
//
// Contract: one calling thread; nothing throws or calls back; each job completes exactly once; a
// completion makes the worker's Transport::wait return.
#pragma once

#include <cstdint>
#include <span>

#include "core/engine/transport.hpp"

namespace holdfast {

using JobId = std::uint64_t;  // chosen by the caller; unique among its open jobs

// `bytes` at `offset` of a region.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct JobDone {
  JobId id = 0;
  std::uint64_t digest = 0;  // of a digest job; zero for the others
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  // The block digest (see digest.hpp) over the extents in order.
  virtual void digest(JobId id, RegionId region, std::span<const Extent> extents) = 0;
  // Copies the extents, in order, back to back to `target_offset` of `target`.
  virtual void gather(JobId id, RegionId region, std::span<const Extent> extents, RegionId target,
                      std::uint64_t target_offset) = 0;
  // The reverse: consecutive bytes from `source_offset` of `source` into the extents, in order.
  virtual void scatter(JobId id, RegionId source, std::uint64_t source_offset, RegionId region,
                       std::span<const Extent> extents) = 0;

  virtual std::size_t poll(std::span<JobDone> out) = 0;
};

}  // namespace holdfast
