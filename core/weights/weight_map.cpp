#include "core/weights/weight_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

constexpr Bytes kSmallestBlock(4096);
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 24;
constexpr std::uint32_t kMostShards = 1U << 14;
constexpr std::uint64_t kMostShardSets = std::uint64_t{1} << 22;
constexpr std::uint64_t kMostRuns = std::uint64_t{1} << 24;

[[noreturn]] void refuse_limit(std::string_view what, std::uint64_t limit,
                               std::string_view instead) {
  throw Error(ErrorCode::LimitExceeded,
              fmt::format("more than {} {}; write {}", limit, what, instead));
}

// Appends in canonical form: touching pieces become one, a single piece has stride 0.
void append(std::vector<Run>& runs, Run run) {
  if (run.count > 1 && run.length == run.stride) {
    run.length *= run.count;
    run.count = 1;
  }
  if (run.count == 1) run.stride = 0;
  if (!runs.empty() && run.count == 1 && runs.back().count == 1 &&
      runs.back().offset + runs.back().length == run.offset) {
    runs.back().length += run.length;
    return;
  }
  runs.push_back(run);
}

// The shard of a layout that holds the place `numerator / denominator` of a divided dimension.
std::uint32_t shard_at(std::uint64_t numerator, std::uint64_t denominator, std::uint32_t shards) {
  return static_cast<std::uint32_t>(numerator * shards / denominator);
}

}  // namespace

WeightMap::WeightMap(const Manifest& manifest, std::vector<Layout> layouts, Bytes block_size)
    : block_size_(block_size) {
  if (block_size < kSmallestBlock) {
    throw Error(ErrorCode::BadValue,
                fmt::format("a block size of {} is too small; write at least {}",
                            to_string(block_size), to_string(kSmallestBlock)));
  }
  if (layouts.empty()) {
    throw Error(ErrorCode::LayoutMismatch, "the model has no layout; register at least one");
  }
  make_parts(manifest);
  for (Layout& layout : layouts) {
    check_layout(layout);
    layouts_.push_back(std::move(layout));
  }
  make_segments();
  const std::uint64_t total = divided_bytes_ + replicated_bytes_;
  block_start_.reserve(std::min(kMostBlocks, total / block_size.count() + segments_.size()));
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) make_blocks(segment);
}

void WeightMap::make_parts(const Manifest& manifest) {
  const auto tensors = manifest.tensors();
  parts_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    const std::uint64_t bytes = manifest.bytes(i).count();
    if (bytes == 0) continue;
    Part part;
    part.name = tensor.name;
    part.offset = manifest.offset(i);
    part.element = holdfast::bytes_of(tensor.dtype);
    part.divided_before = divided_bytes_;
    part.replicated_before = replicated_bytes_;
    const TensorCut cut = cut_of(tensor);
    part.divided = cut != TensorCut::Replicated;
    part.dimension = cut == TensorCut::Columns ? 1 : 0;
    part.size = part.divided ? tensor.shape[part.dimension] : 1;
    part.outer = cut == TensorCut::Columns ? tensor.shape[0] : 1;
    part.span = bytes / part.outer;
    (part.divided ? divided_bytes_ : replicated_bytes_) += bytes;
    parts_.push_back(std::move(part));
  }
}

void WeightMap::check_layout(const Layout& layout) const {
  const auto same_name = [&](const Layout& other) { return other.name == layout.name; };
  if (std::any_of(layouts_.begin(), layouts_.end(), same_name)) {
    throw Error(ErrorCode::LayoutMismatch,
                fmt::format("two layouts are named {}; names must differ", quote(layout.name)));
  }
  check_division(layout);
}

void WeightMap::check_division(const Layout& layout) const {
  if (layout.tensor_parallel == 0) {
    throw Error(ErrorCode::LayoutMismatch,
                fmt::format("layout {} has no shards; write 1 or more", quote(layout.name)));
  }
  if (layout.tensor_parallel > kMostShards) {
    refuse_limit(fmt::format("shards in layout {}", quote(layout.name)), kMostShards, "fewer");
  }
  for (const Part& part : parts_) {
    if (!part.divided || part.size % layout.tensor_parallel == 0) continue;
    throw Error(ErrorCode::LayoutMismatch,
                fmt::format("layout {} cuts dimension {} of tensor {} into {} shards, but its {} "
                            "elements do not divide evenly; write a divisor of {}",
                            quote(layout.name), part.dimension, quote(part.name),
                            layout.tensor_parallel, part.size, part.size));
  }
}

void WeightMap::make_segments() {
  const bool one_shard = std::all_of(layouts_.begin(), layouts_.end(),
                                     [](const Layout& l) { return l.tensor_parallel == 1; });
  if (one_shard) {
    cells_.push_back({{0, 1}, {1, 1}, divided_bytes_ > 0, replicated_bytes_ > 0});
  } else {
    if (divided_bytes_ > 0) make_divided_cells();
    if (replicated_bytes_ > 0) cells_.push_back({{0, 1}, {1, 1}, false, true});
  }
  if (cells_.size() * layouts_.size() > kMostShardSets) {
    refuse_limit("shard sets", kMostShardSets, "fewer layouts or smaller ones");
  }
  if (cells_.size() * parts_.size() > kMostRuns) {
    refuse_limit("pieces of tensors", kMostRuns, "smaller layouts");
  }
  std::vector<std::vector<std::vector<std::uint32_t>>> signatures(cells_.size());
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    for (const Layout& layout : layouts_) signatures[i].push_back(shards_of(cells_[i], layout));
  }
  std::vector<std::size_t> order(cells_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return signatures[a] < signatures[b]; });
  std::vector<Cell> sorted;
  for (const std::size_t i : order) {
    const Cell& cell = cells_[i];
    Segment segment;
    segment.shards = std::move(signatures[i]);
    segment.bytes = Bytes((cell.divided ? width(cell, divided_bytes_) : 0) +
                          (cell.replicated ? replicated_bytes_ : 0));
    sorted.push_back(cell);
    segments_.push_back(std::move(segment));
  }
  cells_ = std::move(sorted);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    segments_[i].runs = model_runs(cells_[i], 0, segments_[i].bytes.count());
  }
}

void WeightMap::make_divided_cells() {
  std::vector<Fraction> cuts;
  for (const Layout& layout : layouts_) {
    for (std::uint32_t k = 0; k <= layout.tensor_parallel; ++k) {
      cuts.push_back({k, layout.tensor_parallel});
    }
  }
  const auto less = [](const Fraction& a, const Fraction& b) {
    return a.numerator * b.denominator < b.numerator * a.denominator;
  };
  const auto equal = [&](const Fraction& a, const Fraction& b) {
    return !less(a, b) && !less(b, a);
  };
  std::sort(cuts.begin(), cuts.end(), less);
  cuts.erase(std::unique(cuts.begin(), cuts.end(), equal), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    cells_.push_back({cuts[i], cuts[i + 1], true, false});
  }
}

std::vector<std::uint32_t> WeightMap::shards_of(const Cell& cell, const Layout& layout) {
  if (cell.divided) {
    return {shard_at(cell.begin.numerator, cell.begin.denominator, layout.tensor_parallel)};
  }
  std::vector<std::uint32_t> all(layout.tensor_parallel);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

void WeightMap::make_blocks(std::size_t segment) {
  const Cell& cell = cells_[segment];
  const std::uint64_t total = segments_[segment].bytes.count();
  segments_[segment].first_block = BlockId(block_start_.size());
  std::size_t part = 0;
  for (std::uint64_t begin = 0; begin < total;) {
    if (block_start_.size() == kMostBlocks) {
      refuse_limit("blocks", kMostBlocks, "a larger block size");
    }
    block_start_.push_back(begin);
    if (total - begin <= block_size_.count()) break;
    std::uint64_t end = begin + block_size_.count();
    while (part + 1 < parts_.size() && bytes_before(cell, parts_[part + 1]) <= end) ++part;
    end -= (end - bytes_before(cell, parts_[part])) % parts_[part].element;
    begin = end;
  }
  segments_[segment].blocks =
      static_cast<std::uint32_t>(block_start_.size() - segments_[segment].first_block.index());
}

std::optional<std::size_t> WeightMap::separated_segment(const Layout& layout) const {
  check_division(layout);
  const std::uint64_t shards = layout.tensor_parallel;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = cells_[i];
    if (!cell.divided) continue;
    const std::uint64_t shard =
        shard_at(cell.begin.numerator, cell.begin.denominator, layout.tensor_parallel);
    if (cell.end.numerator * shards > (shard + 1) * cell.end.denominator) return i;
  }
  return std::nullopt;
}

bool WeightMap::separates(const Layout& layout) const {
  return separated_segment(layout).has_value();
}

void WeightMap::add_layout(Layout layout) {
  check_layout(layout);
  if (const auto segment = separated_segment(layout)) {
    throw Error(ErrorCode::LayoutMismatch,
                fmt::format("layout {} with {} shards would separate segment {}, whose blocks are "
                            "already cut; register it with the model, before the first publish",
                            quote(layout.name), layout.tensor_parallel, *segment));
  }
  if (cells_.size() * (layouts_.size() + 1) > kMostShardSets) {
    refuse_limit("shard sets", kMostShardSets, "fewer layouts or smaller ones");
  }
  // The signatures differed before, so one more entry at their ends leaves their order as it is.
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    segments_[i].shards.push_back(shards_of(cells_[i], layout));
  }
  layouts_.push_back(std::move(layout));
}

SegmentId WeightMap::segment_of(BlockId block) const {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), block,
                       [](BlockId b, const Segment& segment) { return b < segment.first_block; });
  return SegmentId(static_cast<std::size_t>(after - segments_.begin()) - 1);
}

std::pair<std::uint64_t, std::uint64_t> WeightMap::extent_of(BlockId block,
                                                             const Segment& segment) const {
  const bool last = block.index() + 1 == segment.first_block.index() + segment.blocks;
  return {block_start_[block.index()],
          last ? segment.bytes.count() : block_start_[block.index() + 1]};
}

Bytes WeightMap::bytes_of(BlockId block) const {
  const auto [begin, end] = extent_of(block, segments_[segment_of(block).index()]);
  return Bytes(end - begin);
}

Bytes WeightMap::shard_bytes(std::size_t layout, std::uint32_t shard) const {
  assert(shard < layouts_[layout].tensor_parallel);
  static_cast<void>(shard);
  return Bytes(divided_bytes_ / layouts_[layout].tensor_parallel + replicated_bytes_);
}

std::vector<Run> WeightMap::model_runs(BlockId block) const {
  const SegmentId segment = segment_of(block);
  const auto [begin, end] = extent_of(block, segments_[segment.index()]);
  return model_runs(cells_[segment.index()], begin, end);
}

std::vector<Run> WeightMap::model_runs(const Cell& cell, std::uint64_t begin,
                                       std::uint64_t end) const {
  return runs_of(cell, begin, end, [&](const Part& part) {
    const std::uint64_t inside = part.divided ? scaled(part.span, cell.begin) : 0;
    return std::pair(part.offset + inside, part.span);
  });
}

std::vector<Run> WeightMap::local_runs(std::size_t layout, std::uint32_t shard,
                                       BlockId block) const {
  const SegmentId segment = segment_of(block);
  const Cell& cell = cells_[segment.index()];
  const std::uint32_t shards = layouts_[layout].tensor_parallel;
  if (shard >= shards) return {};
  if (cell.divided && shard_at(cell.begin.numerator, cell.begin.denominator, shards) != shard) {
    return {};
  }
  const auto [begin, end] = extent_of(block, segments_[segment.index()]);
  return runs_of(cell, begin, end, [&](const Part& part) {
    const std::uint64_t local = part.divided_before / shards + part.replicated_before;
    if (!part.divided) return std::pair(local, part.span);
    const std::uint64_t inside = scaled(part.span, cell.begin) - part.span / shards * shard;
    return std::pair(local + inside, part.span / shards);
  });
}

template <class Locate>
std::vector<Run> WeightMap::runs_of(const Cell& cell, std::uint64_t begin, std::uint64_t end,
                                    const Locate& locate) const {
  std::vector<Run> runs;
  for (std::size_t i = part_at(cell, begin); begin < end; ++i) {
    const Part& part = parts_[i];
    if (part.divided ? !cell.divided : !cell.replicated) continue;
    const std::uint64_t length = part.divided ? width(cell, part.span) : part.span;
    const std::uint64_t before = bytes_before(cell, part);
    std::uint64_t left = std::min(end, before + length * part.outer) - begin;
    std::uint64_t stretch = (begin - before) / length;
    const std::uint64_t inside = (begin - before) % length;
    const auto [offset, stride] = locate(part);
    begin += left;
    if (inside > 0) {
      const std::uint64_t rest = std::min(length - inside, left);
      append(runs, {offset + stretch * stride + inside, rest, 0, 1});
      left -= rest;
      ++stretch;
    }
    if (const std::uint64_t whole = left / length; whole > 0) {
      append(runs, {offset + stretch * stride, length, stride, whole});
      left -= whole * length;
      stretch += whole;
    }
    if (left > 0) append(runs, {offset + stretch * stride, left, 0, 1});
  }
  return runs;
}

std::uint64_t WeightMap::scaled(std::uint64_t bytes, const Fraction& at) {
  return bytes / at.denominator * at.numerator;
}

std::uint64_t WeightMap::width(const Cell& cell, std::uint64_t bytes) {
  return scaled(bytes, cell.end) - scaled(bytes, cell.begin);
}

std::uint64_t WeightMap::bytes_before(const Cell& cell, const Part& part) {
  return (cell.divided ? width(cell, part.divided_before) : 0) +
         (cell.replicated ? part.replicated_before : 0);
}

std::size_t WeightMap::part_at(const Cell& cell, std::uint64_t offset) const {
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), offset,
      [&](std::uint64_t o, const Part& part) { return o < bytes_before(cell, part); });
  return static_cast<std::size_t>(after - parts_.begin()) - 1;
}

}  // namespace holdfast
