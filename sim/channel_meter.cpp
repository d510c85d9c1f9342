#include "sim/channel_meter.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

__extension__ using Wide = unsigned __int128;

// Of `bytes` spread evenly over [start, end): those before `at`.
std::uint64_t before(std::uint64_t bytes, std::int64_t start, std::int64_t end, std::int64_t at) {
  if (at <= start) return 0;
  if (at >= end) return bytes;
  return static_cast<std::uint64_t>(Wide{bytes} * static_cast<std::uint64_t>(at - start) /
                                    static_cast<std::uint64_t>(end - start));
}

}  // namespace

ChannelMeter::ChannelMeter(std::size_t links, std::uint32_t bins, Time expected)
    : bins_(std::max(bins, 1U)),
      width_(std::max<std::int64_t>(1, expected.picoseconds() / (kFine * bins_))),
      totals_(links),
      total_only_(links, false),
      fine_(links) {}

void ChannelMeter::widen() {
  width_ *= 2;
  for (std::vector<std::uint64_t>& fine : fine_) {
    if (fine.empty()) continue;
    const std::size_t half = fine.size() / 2;
    for (std::size_t i = 0; i < half; ++i) fine[i] = fine[2 * i] + fine[2 * i + 1];
    std::fill(fine.begin() + static_cast<std::ptrdiff_t>(half), fine.end(), 0);
  }
}

void ChannelMeter::add(std::uint32_t link, Time start, Time end, Bytes bytes) {
  totals_[link] += bytes;
  if (total_only_[link] || bytes == Bytes(0)) return;
  const std::int64_t count = std::int64_t{kFine} * bins_;
  while (end.picoseconds() > width_ * count) widen();
  std::vector<std::uint64_t>& fine = fine_[link];
  if (fine.empty()) fine.resize(static_cast<std::size_t>(count));
  const std::int64_t from = start.picoseconds();
  const std::int64_t to = end.picoseconds();
  // What ends at the border of two bins lies in the first.
  const std::int64_t last = std::max<std::int64_t>(0, (to - 1) / width_);
  std::uint64_t done = 0;
  for (std::int64_t bin = std::min(from / width_, last); bin <= last; ++bin) {
    const std::uint64_t until =
        bin == last ? bytes.count() : before(bytes.count(), from, to, (bin + 1) * width_);
    fine[static_cast<std::size_t>(bin)] += until - done;
    done = until;
  }
}

std::vector<Bytes> ChannelMeter::bins(std::uint32_t link, Time makespan) const {
  if (total_only_[link]) return {totals_[link]};
  std::vector<Bytes> result(bins_);
  const std::int64_t end = makespan.picoseconds();
  const auto border = [&](std::int64_t bin) {
    return static_cast<std::int64_t>(Wide{static_cast<std::uint64_t>(end)} *
                                     static_cast<std::uint64_t>(bin) / bins_);
  };
  std::int64_t bin = 0;
  for (std::size_t i = 0; i < fine_[link].size(); ++i) {
    if (fine_[link][i] == 0) continue;
    const std::int64_t from = static_cast<std::int64_t>(i) * width_;
    const std::int64_t to = std::min(from + width_, end);
    while (bin + 1 < bins_ && border(bin + 1) <= from) ++bin;
    std::uint64_t done = 0;
    for (std::int64_t b = bin; b < bins_ && done < fine_[link][i]; ++b) {
      const std::uint64_t until =
          b + 1 == bins_ ? fine_[link][i] : before(fine_[link][i], from, to, border(b + 1));
      result[static_cast<std::size_t>(b)] += Bytes(until - done);
      done = until;
    }
  }
  return result;
}

}  // namespace holdfast::sim
