#include "core/weights/weight_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

constexpr Bytes kSmallestBlock(4096);
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 22;
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 24;

[[noreturn]] void refuse_limit(std::string_view what, std::uint64_t limit,
                               std::string_view instead) {
  throw Error(ErrorCode::LimitExceeded,
              fmt::format("more than {} {}; write {}", limit, what, instead));
}

[[noreturn]] void refuse_entries() {
  refuse_limit("entries in the segments' lists of shards", kMostEntries,
               "fewer layouts or smaller ones");
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

}  // namespace

// Tensors that every layout places alike, and what each family is cut into.
struct WeightMap::Shape {
  std::vector<std::vector<ShardPlace>> places;    // by family, then layout
  std::vector<std::uint32_t> family_of;           // by part
  std::vector<std::vector<std::uint32_t>> cells;  // by family, ascending
};

WeightMap::WeightMap(const Manifest& manifest, std::vector<Layout> layouts, Bytes block_size)
    : structure_(manifest), block_size_(block_size) {
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
    grids_.emplace_back(layout, structure_);
    layouts_.push_back(std::move(layout));
  }
  make_segments();
  for (const LayoutGrid& grid : grids_) locals_.push_back(make_locals(grid));
  block_start_.reserve(
      std::min(kMostBlocks, manifest.total().count() / block_size.count() + segments_.size()));
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) make_blocks(segment);
}

void WeightMap::make_parts(const Manifest& manifest) {
  const auto tensors = manifest.tensors();
  parts_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes = manifest.bytes(i).count();
    if (bytes == 0) continue;
    Part part;
    part.tensor = static_cast<std::uint32_t>(i);
    part.offset = manifest.offset(i);
    part.element = holdfast::bytes_of(tensors[i].dtype);
    part.outer =
        structure_.tensors()[i].cut == TensorCut::Columns ? tensors[i].shape[0] : std::uint64_t{1};
    part.span = bytes / part.outer;
    parts_.push_back(part);
  }
}

void WeightMap::check_layout(const Layout& layout) const {
  const auto same_name = [&](const Layout& other) { return other.name == layout.name; };
  if (std::any_of(layouts_.begin(), layouts_.end(), same_name)) {
    throw Error(ErrorCode::LayoutMismatch,
                fmt::format("two layouts are named {}; names must differ", quote(layout.name)));
  }
  if (const auto fault = fault_of(layout, structure_)) throw Error(fault->code, fault->message);
}

void WeightMap::make_segments() {
  Shape shape = make_families();
  make_cells(shape);
  make_pieces(shape);
}

WeightMap::Shape WeightMap::make_families() const {
  Shape shape;
  std::map<std::vector<ShardPlace>, std::uint32_t> known;
  std::vector<ShardPlace> places(grids_.size());
  for (const Part& part : parts_) {
    for (std::size_t i = 0; i < grids_.size(); ++i) {
      places[i] = grids_[i].place_of(structure_.tensors()[part.tensor]);
    }
    const auto [at, fresh] = known.emplace(places, static_cast<std::uint32_t>(known.size()));
    if (fresh) shape.places.push_back(places);
    shape.family_of.push_back(at->second);
  }
  return shape;
}

void WeightMap::make_cells(Shape& shape) {
  std::map<std::vector<std::vector<std::uint32_t>>, std::vector<std::uint32_t>> cells_of;
  shape.cells.resize(shape.places.size());
  for (std::size_t family = 0; family < shape.places.size(); ++family) {
    const std::vector<ShardPlace>& places = shape.places[family];
    const std::vector<Fraction> cuts = cuts_of(places);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const Cell cell{cuts[i], cuts[i + 1], 0};
      std::vector<std::vector<std::uint32_t>> signature(grids_.size());
      for (std::size_t l = 0; l < grids_.size(); ++l) {
        signature[l] = grids_[l].shards_of(places[l], slice_at(cell, places[l].slices));
        entries_ += signature[l].size();
      }
      if (entries_ > kMostEntries) refuse_entries();
      const auto number = static_cast<std::uint32_t>(cells_.size());
      cells_.push_back(cell);
      shape.cells[family].push_back(number);
      cells_of[std::move(signature)].push_back(number);
    }
  }
  for (const auto& [signature, cells] : cells_of) {
    for (const std::uint32_t cell : cells) {
      cells_[cell].segment = static_cast<std::uint32_t>(segments_.size());
    }
    Segment segment;
    segment.shards = signature;
    segments_.push_back(std::move(segment));
  }
}

std::vector<WeightMap::Fraction> WeightMap::cuts_of(const std::vector<ShardPlace>& places) {
  std::vector<Fraction> cuts;
  for (const ShardPlace& place : places) {
    for (std::uint32_t k = 0; k <= place.slices; ++k) cuts.push_back({k, place.slices});
  }
  const auto less = [](const Fraction& a, const Fraction& b) {
    return a.numerator * b.denominator < b.numerator * a.denominator;
  };
  const auto equal = [&](const Fraction& a, const Fraction& b) {
    return !less(a, b) && !less(b, a);
  };
  std::sort(cuts.begin(), cuts.end(), less);
  cuts.erase(std::unique(cuts.begin(), cuts.end(), equal), cuts.end());
  return cuts;
}

// Two slices of one tensor have different shards, so a segment takes at most one piece of a tensor,
// and in the order of the parts the pieces are in model-space order.
void WeightMap::make_pieces(const Shape& shape) {
  std::uint64_t count = 0;
  for (const std::uint32_t family : shape.family_of) count += shape.cells[family].size();
  if (count > kMostPieces) refuse_limit("pieces of tensors", kMostPieces, "smaller layouts");
  pieces_.resize(segments_.size());
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    for (const std::uint32_t c : shape.cells[shape.family_of[p]]) {
      Segment& segment = segments_[cells_[c].segment];
      pieces_[cells_[c].segment].push_back(
          {static_cast<std::uint32_t>(p), c, segment.bytes.count()});
      segment.bytes += Bytes(width(cells_[c], part.span) * part.outer);
    }
  }
}

std::vector<WeightMap::Local> WeightMap::make_locals(const LayoutGrid& grid) const {
  std::vector<Local> locals(grid.families());
  std::uint64_t kept = 0;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    const ShardPlace place = grid.place_of(structure_.tensors()[part.tensor]);
    for (const std::uint32_t family : grid.families_of(place)) {
      if (++kept > kMostPieces) refuse_limit("pieces of tensors", kMostPieces, "smaller layouts");
      Local& local = locals[family];
      local.parts.push_back({static_cast<std::uint32_t>(p), local.bytes});
      local.bytes += part.span / place.slices * part.outer;
    }
  }
  return locals;
}

void WeightMap::make_blocks(std::size_t segment) {
  const std::vector<Piece>& pieces = pieces_[segment];
  const std::uint64_t total = segments_[segment].bytes.count();
  segments_[segment].first_block = BlockId(block_start_.size());
  std::size_t piece = 0;
  for (std::uint64_t begin = 0; begin < total;) {
    if (block_start_.size() == kMostBlocks) {
      refuse_limit("blocks", kMostBlocks, "a larger block size");
    }
    block_start_.push_back(begin);
    if (total - begin <= block_size_.count()) break;
    std::uint64_t end = begin + block_size_.count();
    while (piece + 1 < pieces.size() && pieces[piece + 1].before <= end) ++piece;
    end -= (end - pieces[piece].before) % parts_[pieces[piece].part].element;
    begin = end;
  }
  segments_[segment].blocks =
      static_cast<std::uint32_t>(block_start_.size() - segments_[segment].first_block.index());
}

std::optional<std::size_t> WeightMap::separated_segment(const LayoutGrid& grid) const {
  using Slice = std::pair<ShardPlace, std::uint32_t>;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    std::vector<Slice> slices;
    for (const Piece& piece : pieces_[i]) {
      const ShardPlace place = grid.place_of(structure_.tensors()[parts_[piece.part].tensor]);
      const Cell& cell = cells_[piece.cell];
      if (crosses_slices(cell, place.slices)) return i;
      const Slice slice(place, slice_at(cell, place.slices));
      if (slices.empty() || slices.back() != slice) slices.push_back(slice);
    }
    std::sort(slices.begin(), slices.end());
    slices.erase(std::unique(slices.begin(), slices.end()), slices.end());
    const auto shards = grid.shards_of(slices.front().first, slices.front().second);
    for (const Slice& slice : slices) {
      if (grid.shards_of(slice.first, slice.second) != shards) return i;
    }
  }
  return std::nullopt;
}

bool WeightMap::separates(const Layout& layout) const {
  if (const auto fault = fault_of(layout, structure_)) throw Error(fault->code, fault->message);
  return separated_segment(LayoutGrid(layout, structure_)).has_value();
}

void WeightMap::add_layout(Layout layout) {
  check_layout(layout);
  LayoutGrid grid(layout, structure_);
  if (const auto segment = separated_segment(grid)) {
    throw Error(ErrorCode::LayoutMismatch,
                fmt::format("layout {} with {} shards would separate segment {}, whose blocks are "
                            "already cut; register it with the model, before the first publish",
                            quote(layout.name), grid.shards(), *segment));
  }
  std::vector<std::vector<std::uint32_t>> shards;
  std::uint64_t entries = entries_;
  for (const std::vector<Piece>& pieces : pieces_) {
    const Piece& piece = pieces.front();
    const ShardPlace place = grid.place_of(structure_.tensors()[parts_[piece.part].tensor]);
    shards.push_back(grid.shards_of(place, slice_at(cells_[piece.cell], place.slices)));
    entries += shards.back().size();
    if (entries > kMostEntries) refuse_entries();
  }
  locals_.push_back(make_locals(grid));
  // The signatures differed before, so one more entry at their ends leaves their order as it is.
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    segments_[i].shards.push_back(std::move(shards[i]));
  }
  entries_ = entries;
  grids_.push_back(std::move(grid));
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
  assert(shard < grids_[layout].shards());
  return Bytes(locals_[layout][grids_[layout].family_of(shard)].bytes);
}

std::vector<Run> WeightMap::model_runs(SegmentId segment) const {
  return model_runs(segment.index(), 0, segments_[segment.index()].bytes.count());
}

std::vector<Run> WeightMap::model_runs(BlockId block) const {
  const SegmentId segment = segment_of(block);
  const auto [begin, end] = extent_of(block, segments_[segment.index()]);
  return model_runs(segment.index(), begin, end);
}

std::vector<Run> WeightMap::model_runs(std::size_t segment, std::uint64_t begin,
                                       std::uint64_t end) const {
  return runs_of(segment, begin, end, [&](std::uint32_t p, const Cell& cell) {
    return std::pair(parts_[p].offset + scaled(parts_[p].span, cell.begin), parts_[p].span);
  });
}

std::vector<Run> WeightMap::local_runs(std::size_t layout, std::uint32_t shard,
                                       BlockId block) const {
  const SegmentId segment = segment_of(block);
  const auto& holders = segments_[segment.index()].shards[layout];
  if (!std::binary_search(holders.begin(), holders.end(), shard)) return {};
  const LayoutGrid& grid = grids_[layout];
  const std::vector<Kept>& kept = locals_[layout][grid.family_of(shard)].parts;
  const auto [begin, end] = extent_of(block, segments_[segment.index()]);
  return runs_of(segment.index(), begin, end, [&](std::uint32_t p, const Cell& cell) {
    const Part& part = parts_[p];
    const ShardPlace place = grid.place_of(structure_.tensors()[part.tensor]);
    const auto at = std::lower_bound(kept.begin(), kept.end(), p,
                                     [](const Kept& k, std::uint32_t q) { return k.part < q; });
    const std::uint64_t slice = part.span / place.slices;
    const std::uint64_t inside =
        scaled(part.span, cell.begin) - slice * grid.slice_of(place, shard);
    return std::pair(at->before + inside, slice);
  });
}

template <class Locate>
std::vector<Run> WeightMap::runs_of(std::size_t segment, std::uint64_t begin, std::uint64_t end,
                                    const Locate& locate) const {
  std::vector<Run> runs;
  for (std::size_t i = piece_at(segment, begin); begin < end; ++i) {
    const Piece& piece = pieces_[segment][i];
    const Cell& cell = cells_[piece.cell];
    const std::uint64_t length = width(cell, parts_[piece.part].span);
    const std::uint64_t whole_piece = length * parts_[piece.part].outer;
    std::uint64_t left = std::min(end, piece.before + whole_piece) - begin;
    std::uint64_t stretch = (begin - piece.before) / length;
    const std::uint64_t inside = (begin - piece.before) % length;
    const auto [offset, stride] = locate(piece.part, cell);
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

std::uint32_t WeightMap::slice_at(const Cell& cell, std::uint32_t slices) {
  return static_cast<std::uint32_t>(cell.begin.numerator * slices / cell.begin.denominator);
}

bool WeightMap::crosses_slices(const Cell& cell, std::uint32_t slices) {
  return cell.end.numerator * slices > (slice_at(cell, slices) + 1) * cell.end.denominator;
}

std::size_t WeightMap::piece_at(std::size_t segment, std::uint64_t offset) const {
  const std::vector<Piece>& pieces = pieces_[segment];
  const auto after = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                      [](std::uint64_t o, const Piece& p) { return o < p.before; });
  return static_cast<std::size_t>(after - pieces.begin()) - 1;
}

}  // namespace holdfast
