// Segments and blocks: what travels as a whole, the same for every layout of the model.
//
// A segment is a maximal set of bytes that every registered layout puts on the same set of shards.
// A block is at most `block_size` bytes of one segment, consecutive in the segment's model-space
// order, never splits an element; the last one of a segment may be short, and so may one that would
// have split an element. Blocks of a segment are numbered in order, segments one after the other.
//
// Segments are ordered by their signature (for each layout, the sorted list of shards). Where every
// layout has one shard, replicated and divided tensors have one signature and so one segment.
//
// How it works: every layout divides a dimension evenly, so the places k/T at which any of the
// layouts cuts are the same fractions for each divided tensor. They cut [0, 1) into cells, and a
// cell of all divided tensors is a segment; the replicated tensors are one more. Offsets within a
// segment, a shard or model space then follow from prefix sums over the tensors.
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
#include "core/weights/manifest.hpp"

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
  std::vector<Run> runs;                           // model space, ascending by tensor
  Bytes bytes;
  BlockId first_block;
  std::uint32_t blocks = 0;
};

class WeightMap {
 public:
  // Copies what it needs: the manifest need not outlive the map.
  // Throws Error(LayoutMismatch) where a layout does not divide a tensor's dimension, where two
  // layouts have one name, where a layout has no shard, or where there is none; Error(BadValue) for
  // a block size below 4 KiB; Error(LimitExceeded) beyond 2^24 blocks, 2^14 shards in a layout,
  // 2^22 shard sets (segments x layouts) or 2^24 pieces (tensors x segments).
  // O(tensors x segments + segments x layouts + blocks).
  WeightMap(const Manifest& manifest, std::vector<Layout> layouts, Bytes block_size);

  // Whether a layout that comes late would put bytes of one segment on different sets of shards.
  // A layout that does not divide the tensors throws as in the constructor.
  // O(tensors + segments x log).
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
  // Bytes that one shard of a layout holds: the same for each of its shards. O(1).
  [[nodiscard]] Bytes shard_bytes(std::size_t layout, std::uint32_t shard) const;

  // Where a block's bytes lie in model space, in order. O(log tensors + tensors it spans).
  [[nodiscard]] std::vector<Run> model_runs(BlockId block) const;
  // Where they lie in the memory of one shard: its parts of the tensors in name order, each
  // row-major, back to back. The k-th byte of the block is the k-th byte of these runs. Empty if
  // that shard does not hold the block. O(log tensors + tensors it spans).
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
    std::string name;
    std::uint64_t offset = 0;  // in model space
    std::uint64_t outer = 1;
    std::uint64_t span = 0;
    std::uint64_t element = 1;
    bool divided = false;
    std::uint32_t dimension = 0;          // the divided one
    std::uint64_t size = 0;               // its elements
    std::uint64_t divided_before = 0;     // bytes of the divided tensors before this one
    std::uint64_t replicated_before = 0;  // bytes of the others before this one
  };
  // What a segment takes of the tensors.
  struct Cell {
    Fraction begin;
    Fraction end{1, 1};
    bool divided = false;
    bool replicated = false;
  };

  void check_layout(const Layout& layout) const;
  void check_division(const Layout& layout) const;
  void make_parts(const Manifest& manifest);
  void make_segments();
  void make_divided_cells();
  void make_blocks(std::size_t segment);
  [[nodiscard]] static std::vector<std::uint32_t> shards_of(const Cell& cell, const Layout& layout);
  [[nodiscard]] std::optional<std::size_t> separated_segment(const Layout& layout) const;
  // Begin and end of a block in its segment's own order.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> extent_of(BlockId block,
                                                                  const Segment& segment) const;
  // The bytes up to a fraction, or within a cell, of divided bytes. Exact: `bytes` is a sum of
  // multiples of every layout's shards.
  [[nodiscard]] static std::uint64_t scaled(std::uint64_t bytes, const Fraction& at);
  [[nodiscard]] static std::uint64_t width(const Cell& cell, std::uint64_t bytes);
  // Where a part begins in the segment's own order, and the part at a place of that order.
  [[nodiscard]] static std::uint64_t bytes_before(const Cell& cell, const Part& part);
  [[nodiscard]] std::size_t part_at(const Cell& cell, std::uint64_t offset) const;
  [[nodiscard]] std::vector<Run> model_runs(const Cell& cell, std::uint64_t begin,
                                            std::uint64_t end) const;
  // Runs of a part of a segment; `locate` gives the offset of a part's first stretch within the
  // cell, and the distance between stretches, in the space asked for.
  template <class Locate>
  [[nodiscard]] std::vector<Run> runs_of(const Cell& cell, std::uint64_t begin, std::uint64_t end,
                                         const Locate& locate) const;

  std::vector<Layout> layouts_;
  Bytes block_size_;
  std::vector<Part> parts_;
  std::uint64_t divided_bytes_ = 0;
  std::uint64_t replicated_bytes_ = 0;
  std::vector<Segment> segments_;
  std::vector<Cell> cells_;                 // by segment
  std::vector<std::uint64_t> block_start_;  // offset of each block in its segment's own order
};

}  // namespace holdfast
