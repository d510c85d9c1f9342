// Bytes of each link over time, in bounded memory, for a makespan that is not known beforehand.
//
// While it runs, time is cut in fine bins, kFine for each bin of the answer; when time grows beyond
// the last one, neighbours are merged and the width doubles. So at the end between kFine / 2 and
// kFine fine bins lie in each bin of the answer. Sums are exact, whatever the bins.
#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace holdfast::sim {

class ChannelMeter {
 public:
  // `expected`: a lower estimate of the makespan, to start with bins of a fitting width.
  ChannelMeter(std::size_t links, std::uint32_t bins, Time expected);

  // From now on only the total of this link is kept.
  void keep_total_only(std::uint32_t link) { total_only_[link] = true; }

  // `bytes` at a constant rate between start and end; all at once at `end` if they are the same.
  // O(fine bins touched), plus O(links x bins) at each doubling.
  void add(std::uint32_t link, Time start, Time end, Bytes bytes);

  [[nodiscard]] Bytes total(std::uint32_t link) const { return totals_[link]; }
  // Bytes by bin of makespan / bins; one entry if only the total is kept. The sum is the total.
  // Precondition: makespan is not before the end of anything added.
  [[nodiscard]] std::vector<Bytes> bins(std::uint32_t link, Time makespan) const;

 private:
  static constexpr std::uint32_t kFine = 4;
  void widen();

  std::uint32_t bins_;
  std::int64_t width_;  // of a fine bin, picoseconds
  std::vector<Bytes> totals_;
  std::vector<bool> total_only_;
  std::vector<std::vector<std::uint64_t>> fine_;  // by link; empty before first use
};

}  // namespace holdfast::sim
