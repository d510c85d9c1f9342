// Segments and blocks: what travels as a whole, the same for every layout of the model.
//
// A segment is a maximal set of bytes that every registered layout puts on the same set of shards.
// A block is at most `block_size` bytes of one segment, consecutive in the segment's model-space
// order, never splits an element; the last one of a segment may be short, and so may one that would
// have split an element. Blocks of a segment are numbered in order, segments one after the other.
//
// Segments are ordered by their signature (for each layout, the sorted list of shards).
//
// How it works: layouts divide a dimension evenly, so those tensors that every layout places alike
// are cut at the same fractions k/T. These cut [0, 1) into cells, and a cell of all such tensors
// has one signature; cells of one signature are a segment. A segment lists the tensors that it
// takes a part of, with prefix sums, so that offsets within it are found by bisection; the same for
// what a shard holds.
//
//   WeightMap map(preset_manifest("llama-3.1-70b"), {{"trainer", 8}, {"rollout", 4}}, block_size);
//   for (const Run& run : map.local_runs(0, 3, block)) ...   // what shard 3 of 8 copies
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "core/weights/layout.hpp"
#include "core/weights/layout_grid.hpp"
#include "core/weights/manifest.hpp"
#include "core/weights/model_structure.hpp"

namespace holdfast {

// `count` pieces of `length` bytes, the first at `offset`, each `stride` bytes after the one
// before. A single piece has stride 0; pieces that touch are one.
struct Run {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t stride = 0;
  std::uint64_t count = 1;
  friend constexpr auto operator<=>(const Run&, const Run&) = default;
};

struct Segment {
  std::vector<std::vector<std::uint32_t>> shards;  // by layout: the shards that hold it, ascending
  Bytes bytes;
  BlockId first_block;
  std::uint32_t blocks = 0;
};

class WeightMap {
 public:
  // Copies what it needs: the manifest need not outlive the map.
  // Throws Error(LayoutMismatch) where fault_of says that a layout does not suit the model, where
  // two layouts have one name, or where there is none; Error(BadValue) for a block size below
  // 4 KiB; Error(LimitExceeded) beyond 2^24 blocks, 2^14 shards in a layout, 2^22 entries in the
  // segments' lists of shards or 2^24 pieces (tensors x cuts, or x the shards that differ).
  // O((pieces + blocks + entries) x log).
  WeightMap(const Manifest& manifest, std::vector<Layout> layouts, Bytes block_size);

  // Whether a layout that comes late would put bytes of one segment on different sets of shards.
  // A layout that does not suit the model throws as in the constructor. O(pieces).
  [[nodiscard]] bool separates(const Layout& layout) const;
  // Registers a layout after the blocks were cut; segments and blocks keep their ids. Throws
  // Error(LayoutMismatch) if it would separate a segment, and as the constructor does; then nothing
  // has changed.
  void add_layout(Layout layout);

  [[nodiscard]] std::span<const Layout> layouts() const { return layouts_; }
  [[nodiscard]] Bytes block_size() const { return block_size_; }
  [[nodiscard]] std::span<const Segment> segments() const { return segments_; }
  [[nodiscard]] std::size_t blocks() const { return block_start_.size(); }
  [[nodiscard]] SegmentId segment_of(BlockId block) const;
  [[nodiscard]] Bytes bytes_of(BlockId block) const;
  // Bytes that one shard of a layout holds. O(1).
  [[nodiscard]] Bytes shard_bytes(std::size_t layout, std::uint32_t shard) const;

  // Where a segment's or a block's bytes lie in model space, in order.
  // O(log tensors + tensors it spans).
  [[nodiscard]] std::vector<Run> model_runs(SegmentId segment) const;
  [[nodiscard]] std::vector<Run> model_runs(BlockId block) const;
  // Where a block's bytes lie in the memory of one shard: its parts of the tensors in name order,
  // each row-major, back to back. The k-th byte of the block is the k-th byte of these runs. Empty
  // if that shard does not hold the block. O(tensors it spans x log tensors).
  [[nodiscard]] std::vector<Run> local_runs(std::size_t layout, std::uint32_t shard,
                                            BlockId block) const;

 private:
  // The place numerator/denominator of a divided dimension; compared by cross multiplication.
  struct Fraction {
    std::uint64_t numerator = 0;
    std::uint64_t denominator = 1;
  };
  // A tensor with bytes: `outer` stretches of `span` bytes. If divided, each stretch is.
  struct Part {
    std::uint32_t tensor = 0;  // of the model's structure
    std::uint64_t offset = 0;  // in model space
    std::uint64_t outer = 1;
    std::uint64_t span = 0;
    std::uint64_t element = 1;
  };
  // What a segment takes of the tensors of one family.
  struct Cell {
    Fraction begin;
    Fraction end{1, 1};
    std::uint32_t segment = 0;
  };
  // What a segment takes of one tensor.
  struct Piece {
    std::uint32_t part = 0;
    std::uint32_t cell = 0;
    std::uint64_t before = 0;  // the segment's bytes before this piece
  };
  // What the shards of one family of a layout's grid hold of one tensor.
  struct Kept {
    std::uint32_t part = 0;
    std::uint64_t before = 0;  // the shard's bytes before it
  };
  struct Local {
    std::vector<Kept> parts;  // ascending
    std::uint64_t bytes = 0;
  };
  struct Shape;  // of the constructor: families of tensors, and their cells

  void check_layout(const Layout& layout) const;
  void make_parts(const Manifest& manifest);
  void make_segments();
  [[nodiscard]] Shape make_families() const;
  void make_cells(Shape& shape);
  [[nodiscard]] static std::vector<Fraction> cuts_of(const std::vector<ShardPlace>& places);
  void make_pieces(const Shape& shape);
  void make_blocks(std::size_t segment);
  [[nodiscard]] std::vector<Local> make_locals(const LayoutGrid& grid) const;
  [[nodiscard]] std::optional<std::size_t> separated_segment(const LayoutGrid& grid) const;
  // Begin and end of a block in its segment's own order.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> extent_of(BlockId block,
                                                                  const Segment& segment) const;
  // The bytes up to a fraction, or within a cell, of divided bytes. Exact: `bytes` is a multiple of
  // every layout's cuts.
  [[nodiscard]] static std::uint64_t scaled(std::uint64_t bytes, const Fraction& at);
  [[nodiscard]] static std::uint64_t width(const Cell& cell, std::uint64_t bytes);
  // The slice of `slices` even ones in which a cell begins, and whether it reaches beyond it.
  [[nodiscard]] static std::uint32_t slice_at(const Cell& cell, std::uint32_t slices);
  [[nodiscard]] static bool crosses_slices(const Cell& cell, std::uint32_t slices);
  // The piece of a segment at a place of its own order.
  [[nodiscard]] std::size_t piece_at(std::size_t segment, std::uint64_t offset) const;
  [[nodiscard]] std::vector<Run> model_runs(std::size_t segment, std::uint64_t begin,
                                            std::uint64_t end) const;
  // Runs of a part of a segment; `locate` gives, for a part and its cell, the offset of the first
  // stretch within the cell, and the distance between stretches, in the space asked for.
  template <class Locate>
  [[nodiscard]] std::vector<Run> runs_of(std::size_t segment, std::uint64_t begin,
                                         std::uint64_t end, const Locate& locate) const;

  ModelStructure structure_;
  std::vector<Layout> layouts_;
  std::vector<LayoutGrid> grids_;           // by layout
  std::vector<std::vector<Local>> locals_;  // by layout and family of its grid
  Bytes block_size_;
  std::vector<Part> parts_;
  std::vector<Cell> cells_;
  std::vector<Segment> segments_;
  std::vector<std::vector<Piece>> pieces_;  // by segment, ascending
  std::uint64_t entries_ = 0;               // of the segments' lists of shards
  std::vector<std::uint64_t> block_start_;  // offset of each block in its segment's own order
};

}  // namespace holdfast
