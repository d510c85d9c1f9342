// Random numbers that are the same on every machine and for every standard library: a seed and the
// number of a stream give one sequence, and streams do not disturb each other. So "the lifetimes of
// seat 3" stay what they are when something else draws more or fewer numbers.
//
//   Random random(seed, 3);
//   random.uniform();  // in (0, 1), never an end
//
// Fast, equidistributed, good enough for simulation, not for secrets. Not thread-safe; copies go on
// independently from the same state.
#pragma once

#include <cstdint>

#include "core/mix.hpp"

namespace holdfast {

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mixed(mixed(seed) ^ (stream * kGolden + 1))) {}

  // All 64 bits.
  [[nodiscard]] std::uint64_t bits() { return next_mixed(state_); }
  // Of 2^53 equally likely values in the open interval from 0 to 1.
  [[nodiscard]] double uniform() { return (static_cast<double>(bits() >> 11U) + 0.5) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast
