#include "core/catalog/model_space.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace holdfast {

ModelSpace::ModelSpace(std::string job, std::string model, Bytes block_size,
                       std::vector<Bytes> block_bytes)
    : job_(std::move(job)),
      model_(std::move(model)),
      block_size_(block_size),
      block_bytes_(std::move(block_bytes)) {
  whole_.spans.push_back({BlockId(0U), blocks()});
  whole_.first.push_back(0);
  whole_.blocks = blocks();
  for (const Bytes bytes : block_bytes_) whole_.bytes += bytes;
}

LayoutNumber ModelSpace::add_layout(std::string name, std::vector<std::vector<BlockSpan>> shards) {
  for (const LayoutShards& other : layouts_) {
    if (other.name == name) {
      throw Error(ErrorCode::Duplicate,
                  fmt::format("layout '{}' of model '{}' is there already", name, model_));
    }
  }
  LayoutShards layout{std::move(name), {}};
  std::vector<bool> covered(block_bytes_.size());
  for (std::vector<BlockSpan>& spans : shards) {
    Shard shard;
    for (const BlockSpan& span : spans) {
      if (std::uint64_t{span.first.value()} + span.count > block_bytes_.size()) {
        throw Error(ErrorCode::LayoutMismatch,
                    fmt::format("layout '{}' names block {}, but model '{}' has {} blocks",
                                layout.name, std::uint64_t{span.first.value()} + span.count - 1,
                                model_, block_bytes_.size()));
      }
      shard.first.push_back(shard.blocks);
      shard.blocks += span.count;
      for (std::uint32_t i = 0; i < span.count; ++i) {
        covered[span.first.index() + i] = true;
        shard.bytes += block_bytes_[span.first.index() + i];
      }
    }
    shard.spans = std::move(spans);
    layout.shards.push_back(std::move(shard));
  }
  const auto missing = std::find(covered.begin(), covered.end(), false);
  if (missing != covered.end()) {
    throw Error(ErrorCode::LayoutMismatch,
                fmt::format("no shard of layout '{}' holds block {} of model '{}'", layout.name,
                            missing - covered.begin(), model_));
  }
  layouts_.push_back(std::move(layout));
  return static_cast<LayoutNumber>(layouts_.size() - 1);
}

std::span<const BlockSpan> ModelSpace::spans(ShardId shard) const {
  return at(shard).spans;
}
std::uint32_t ModelSpace::blocks(ShardId shard) const {
  return at(shard).blocks;
}
Bytes ModelSpace::bytes(ShardId shard) const {
  return at(shard).bytes;
}

BlockId ModelSpace::block(ShardId shard, std::uint32_t number) const {
  const Shard& s = at(shard);
  const auto after = std::upper_bound(s.first.begin(), s.first.end(), number);
  const auto k = static_cast<std::size_t>(after - s.first.begin()) - 1;
  return BlockId(s.spans[k].first.value() + (number - s.first[k]));
}

std::optional<std::uint32_t> ModelSpace::number(ShardId shard, BlockId block) const {
  const Shard& s = at(shard);
  const auto after =
      std::upper_bound(s.spans.begin(), s.spans.end(), block,
                       [](BlockId id, const BlockSpan& span) { return id < span.first; });
  if (after == s.spans.begin()) return std::nullopt;
  const auto k = static_cast<std::size_t>(after - s.spans.begin()) - 1;
  const std::uint32_t offset = block.value() - s.spans[k].first.value();
  if (offset >= s.spans[k].count) return std::nullopt;
  return s.first[k] + offset;
}

ModelSpace space_of(std::string job, std::string model, const WeightMap& map) {
  std::vector<Bytes> bytes;
  bytes.reserve(map.blocks());
  for (std::uint32_t b = 0; b < map.blocks(); ++b) bytes.push_back(map.bytes_of(BlockId(b)));
  ModelSpace space(std::move(job), std::move(model), map.block_size(), std::move(bytes));
  for (std::size_t l = 0; l < map.layouts().size(); ++l) {
    std::vector<std::vector<BlockSpan>> shards(map.layouts()[l].shards());
    for (const Segment& segment : map.segments()) {
      if (segment.blocks == 0) continue;
      for (const std::uint32_t s : segment.shards[l]) {
        std::vector<BlockSpan>& spans = shards[s];
        if (!spans.empty() &&
            spans.back().first.value() + spans.back().count == segment.first_block.value()) {
          spans.back().count += segment.blocks;
        } else {
          spans.push_back({segment.first_block, segment.blocks});
        }
      }
    }
    space.add_layout(map.layouts()[l].name, std::move(shards));
  }
  return space;
}

}  // namespace holdfast
