// Seeded draws that are the same on every platform and with every standard library.
#pragma once

#include <cstdint>

#include "core/mix.hpp"
#include "core/units.hpp"

namespace holdfast::storm {

// A stream of its own for each purpose, so that one draw more or less in one of them
// changes nothing in the others.
class Dice {
 public:
  explicit Dice(std::uint64_t seed, std::uint64_t purpose = 0)
      : state_(seed * kGolden ^ (purpose + 1) * 0xd1342543de82ef95U) {}

  std::uint64_t next() { return next_mixed(state_); }
  // From 0 to n - 1; 0 for n = 0.
  std::uint32_t below(std::uint64_t n) {
    return static_cast<std::uint32_t>(n == 0 ? 0 : next() % n);
  }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) {
    return least + below(std::uint64_t{most} - least + 1);
  }
  bool chance(std::uint32_t per_mille) { return below(1000) < per_mille; }
  Time between(Time least, Time most) {
    const auto span = static_cast<std::uint64_t>((most - least).picoseconds()) + 1;
    return least + Time(static_cast<std::int64_t>(next() % span));
  }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::storm
