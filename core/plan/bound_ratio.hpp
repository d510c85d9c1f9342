// Exact arithmetic on (bytes / capacity), which as a time is a fraction of a picosecond.
#pragma once

#include <cstdint>
#include <limits>

#include "core/units.hpp"

namespace holdfast::bound {

__extension__ using Wide = unsigned __int128;

// Bytes over bytes per second; capacity zero with bytes to move is later than everything.
struct Ratio {
  std::uint64_t bytes = 0;
  std::uint64_t capacity = 0;
};

constexpr bool less(Ratio a, Ratio b) {
  return Wide{a.bytes} * b.capacity < Wide{b.bytes} * a.capacity;
}

// The whole picoseconds in it (rounded down, so that a bound stays one); Time::never() where
// nothing carries the bytes.
constexpr Time crossing_time(Ratio ratio) {
  if (ratio.bytes == 0) return Time();
  if (ratio.capacity == 0) return Time::never();
  const Wide picoseconds = Wide{ratio.bytes} * 1'000'000'000'000U / ratio.capacity;
  const Wide most = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  return picoseconds >= most ? Time::never() : Time(static_cast<std::int64_t>(picoseconds));
}

// a + b, never() if either is.
constexpr Time add_times(Time a, Time b) {
  return a.picoseconds() > Time::never().picoseconds() - b.picoseconds() ? Time::never() : a + b;
}

}  // namespace holdfast::bound
