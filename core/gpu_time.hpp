// GPU-seconds, exact: a sum of picoseconds over GPUs may exceed what Time holds.
#pragma once

#include <cstdint>

#include "core/units.hpp"

namespace holdfast {

struct GpuTime {
  __extension__ using Wide = unsigned __int128;  // in no C++ standard; both compilers have it
  Wide picoseconds = 0;

  // `time` must not be negative.
  void add(Time time, std::uint64_t gpus) { picoseconds += Wide(time.picoseconds()) * gpus; }
  [[nodiscard]] double seconds() const { return static_cast<double>(picoseconds) / 1e12; }
};

}  // namespace holdfast
