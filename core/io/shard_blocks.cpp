#include "core/io/shard_blocks.hpp"

#include <algorithm>

namespace holdfast {
namespace {

Bytes bytes_between(std::uint64_t begin, std::uint64_t end, const WeightMap& map) {
  Bytes bytes;
  for (std::uint64_t b = begin; b < end; ++b) {
    bytes += map.bytes_of(BlockId(static_cast<std::uint32_t>(b)));
  }
  return bytes;
}

}  // namespace

void ShardBlocks::append(BlockSpan span, Bytes span_bytes) {
  if (!spans.empty() && spans.back().first.value() + spans.back().count == span.first.value()) {
    spans.back().count += span.count;
  } else {
    spans.push_back(span);
  }
  blocks += span.count;
  bytes += span_bytes;
}

ShardTable shard_table(const WeightMap& map) {
  const auto layouts = map.layouts();
  ShardTable table;
  table.shards.resize(layouts.size());
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    table.shards[i].resize(layouts[i].shards());
  }
  for (const Segment& segment : map.segments()) {
    if (segment.blocks == 0) {
      continue;
    }
    const BlockSpan span{segment.first_block, segment.blocks};
    table.whole.append(span, segment.bytes);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      for (const std::uint32_t shard : segment.shards[i]) {
        table.shards[i][shard].append(span, segment.bytes);
      }
    }
  }
  return table;
}

ShardBlocks part_of(const ShardBlocks& shard, const HeldPart& part, const WeightMap& map) {
  // The first p % and the last 100 - p % are together everything: the one rounds down, the other
  // up.
  constexpr std::uint64_t kWhole = 1'000'000;
  const std::uint64_t share = part.parts_per_million;
  const std::uint64_t keep = part.from_end ? shard.blocks - shard.blocks * (kWhole - share) / kWhole
                                           : shard.blocks * share / kWhole;
  const std::uint64_t begin = part.from_end ? shard.blocks - keep : 0;
  const std::uint64_t end = begin + keep;
  ShardBlocks result;
  std::uint64_t at = 0;  // the number, within the shard, of the span's first block
  for (const BlockSpan& span : shard.spans) {
    const std::uint64_t from = std::max(begin, at);
    const std::uint64_t to = std::min(end, at + span.count);
    if (from < to) {
      const std::uint64_t first = span.first.value() + (from - at);
      result.append(
          {BlockId(static_cast<std::uint32_t>(first)), static_cast<std::uint32_t>(to - from)},
          bytes_between(first, first + (to - from), map));
    }
    at += span.count;
  }
  return result;
}

Bytes union_bytes(std::span<const ShardBlocks* const> held, const WeightMap& map) {
  if (held.empty()) {
    return Bytes();
  }
  if (held.size() == 1) {
    return held.front()->bytes;
  }
  std::vector<BlockSpan> spans;
  for (const ShardBlocks* one : held) {
    spans.insert(spans.end(), one->spans.begin(), one->spans.end());
  }
  std::sort(spans.begin(), spans.end());
  Bytes bytes;
  std::uint64_t next = 0;
  for (const BlockSpan& span : spans) {
    const std::uint64_t begin = std::max<std::uint64_t>(next, span.first.value());
    const std::uint64_t end = std::uint64_t{span.first.value()} + span.count;
    bytes += bytes_between(begin, std::max(begin, end), map);
    next = std::max(next, end);
  }
  return bytes;
}

}  // namespace holdfast
