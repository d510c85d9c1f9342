#include "core/plan/holdings.hpp"

#include <algorithm>

namespace holdfast {
namespace {

std::uint64_t end_of(const BlockSpan& span) {
  return std::uint64_t{span.first.value()} + span.count;
}

}  // namespace

void Holdings::add(WorkerId worker, BlockSpan blocks) {
  if (blocks.count == 0) return;
  if (spans_.size() <= worker.index()) spans_.resize(worker.index() + 1);
  std::vector<BlockSpan>& spans = spans_[worker.index()];
  // All that touch the new one become one with it.
  const auto first = std::partition_point(spans.begin(), spans.end(), [&](const BlockSpan& span) {
    return end_of(span) < blocks.first.value();
  });
  auto last = first;
  std::uint64_t begin = blocks.first.value();
  std::uint64_t end = end_of(blocks);
  for (; last != spans.end() && last->first.value() <= end; ++last) {
    begin = std::min<std::uint64_t>(begin, last->first.value());
    end = std::max(end, end_of(*last));
  }
  const BlockSpan merged{BlockId(static_cast<std::uint32_t>(begin)),
                         static_cast<std::uint32_t>(end - begin)};
  spans.insert(spans.erase(first, last), merged);
}

bool Holdings::has(WorkerId worker, BlockId block) const {
  const auto spans = of(worker);
  const auto after = std::partition_point(
      spans.begin(), spans.end(), [&](const BlockSpan& span) { return span.first <= block; });
  return after != spans.begin() && block.value() < end_of(*std::prev(after));
}

std::span<const BlockSpan> Holdings::of(WorkerId worker) const {
  if (spans_.size() <= worker.index()) return {};
  return spans_[worker.index()];
}

std::uint32_t first_missing(const Holdings& holdings, const Demand& demand, const Stripe& stripe,
                            WorkerId worker) {
  std::uint32_t count = 0;
  for (const BlockId block : blocks_of(demand, stripe)) {
    if (!holdings.has(worker, block)) break;
    ++count;
  }
  return count;
}

}  // namespace holdfast
