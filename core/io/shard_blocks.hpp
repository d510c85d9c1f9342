// What one shard of a layout holds, as spans of blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/scenario.hpp"
#include "core/plan/demand.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast {

struct ShardBlocks {
  std::vector<BlockSpan> spans;  // ascending, not touching
  std::uint64_t blocks = 0;
  Bytes bytes;

  // Blocks after all those that are there.
  void append(BlockSpan span, Bytes span_bytes);
};

// By layout of the map and shard, and last the whole model. O(segments x shards).
struct ShardTable {
  std::vector<std::vector<ShardBlocks>> shards;
  ShardBlocks whole;
};
[[nodiscard]] ShardTable shard_table(const WeightMap& map);

// The first or last share of a shard's blocks, in whole blocks: the first
// rounded down, the last rounded up. O(blocks).
[[nodiscard]] ShardBlocks part_of(const ShardBlocks& shard, const HeldPart& part,
                                  const WeightMap& map);

// Bytes of the union. O(1) for one, else O(blocks).
[[nodiscard]] Bytes union_bytes(std::span<const ShardBlocks* const> held, const WeightMap& map);

}  // namespace holdfast
