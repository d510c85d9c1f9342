// The best cut so far and each group's own bound. Cuts come in by the ten thousand and few of them
// matter, so that lists are written out only for one that is better than all before.
#pragma once

#include <utility>
#include <vector>

#include "core/plan/bound.hpp"
#include "core/plan/bound_ratio.hpp"

namespace holdfast::bound {

class Result {
 public:
  explicit Result(std::size_t groups) { bound_.by_group.resize(groups); }

  [[nodiscard]] Time best() const { return bound_.cut.time; }
  [[nodiscard]] Time best(std::uint32_t group) const { return bound_.by_group[group]; }

  void raise_group(std::uint32_t group, Time time) {
    Time& own = bound_.by_group[group];
    own = own < time ? time : own;
  }

  // `write()` gives the Cut without its bytes, capacity, latency and time.
  template <class Write>
  void offer(Ratio ratio, Time latency, const Write& write) {
    const Time time = add_times(crossing_time(ratio), latency);
    if (time <= best()) return;
    bound_.cut = write();
    bound_.cut.bytes = Bytes(ratio.bytes);
    bound_.cut.capacity = Rate(ratio.capacity);
    bound_.cut.latency = latency;
    bound_.cut.time = time;
  }

  [[nodiscard]] Bound take() && { return std::move(bound_); }

 private:
  Bound bound_;
};

}  // namespace holdfast::bound
