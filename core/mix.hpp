// Scattering 64-bit numbers: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", OOPSLA 2014), for seeded draws and for telling combinations apart. Not for secrets.
#pragma once

#include <cstdint>

namespace holdfast {

// 2^64 over the golden ratio, odd: its multiples are spread evenly.
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

// The finaliser, a bijection: every bit of `z` reaches every bit of the result.
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// The next draw of the stream whose state is `state`.
constexpr std::uint64_t next_mixed(std::uint64_t& state) {
  return mixed(state += kGolden);
}

}  // namespace holdfast
