#include "real/clock.hpp"

#include <chrono>

namespace holdfast::real {

Time steady_now() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point start = Clock::now();
  const auto passed = Clock::now() - start;
  return nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count());
}

}  // namespace holdfast::real
