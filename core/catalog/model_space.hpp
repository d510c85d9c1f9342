// One job's model as the catalog sees it: its blocks, and which of them each shard of each
// registered layout holds. Jobs are name spaces: workers of one never see versions of another.
//
// Immutable once the coordinator knows it (layouts are registered with the model, before its first
// publish); shared by the coordinator and all agents. Threads may share it.
//
//   ModelSpace space("job-7", "llama", block_size, block_bytes);
//   LayoutNumber tp2 = space.add_layout("tp2", {{{BlockId(0U), 8}}, {{BlockId(8U), 8}}});
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/units.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast {

using SpaceId = Id<struct SpaceTag>;  // index into the coordinator's model spaces
using LayoutNumber = std::uint32_t;   // index into a space's layouts
using GroupId = Id<struct GroupTag>;  // index into the coordinator's groups

// What one worker of a group holds of a model. Host memory, which keeps copies for others, holds
// blocks of kWholeModel, whose shard is every block.
struct ShardId {
  LayoutNumber layout = 0;
  std::uint32_t rank = 0;
  friend constexpr auto operator<=>(const ShardId&, const ShardId&) = default;
};
inline constexpr ShardId kWholeModel{0xffffffffU, 0};

class ModelSpace {
 public:
  ModelSpace(std::string job, std::string model, Bytes block_size, std::vector<Bytes> block_bytes);

  // By rank, the blocks of each shard, ascending and not touching. Throws Error(LayoutMismatch) if
  // some block is on no shard or beyond the model, Error(Duplicate) for a name that is there.
  LayoutNumber add_layout(std::string name, std::vector<std::vector<BlockSpan>> shards);

  [[nodiscard]] const std::string& job() const { return job_; }
  [[nodiscard]] const std::string& model() const { return model_; }
  [[nodiscard]] Bytes block_size() const { return block_size_; }
  [[nodiscard]] std::span<const Bytes> block_bytes() const { return block_bytes_; }
  [[nodiscard]] std::uint32_t blocks() const {
    return static_cast<std::uint32_t>(block_bytes_.size());
  }

  [[nodiscard]] std::size_t layouts() const { return layouts_.size(); }
  [[nodiscard]] const std::string& layout_name(LayoutNumber layout) const {
    return layouts_[layout].name;
  }
  [[nodiscard]] std::uint32_t ranks(LayoutNumber layout) const {
    return static_cast<std::uint32_t>(layouts_[layout].shards.size());
  }

  // A shard's blocks are numbered from 0 in ascending order of their ids.
  [[nodiscard]] std::span<const BlockSpan> spans(ShardId shard) const;
  [[nodiscard]] std::uint32_t blocks(ShardId shard) const;
  [[nodiscard]] Bytes bytes(ShardId shard) const;
  // Precondition: number < blocks(shard). O(log spans).
  [[nodiscard]] BlockId block(ShardId shard, std::uint32_t number) const;
  // Nothing if the shard does not hold the block. O(log spans).
  [[nodiscard]] std::optional<std::uint32_t> number(ShardId shard, BlockId block) const;
  [[nodiscard]] bool valid(ShardId shard) const {
    if (shard == kWholeModel) return true;
    return shard.layout < layouts_.size() && shard.rank < layouts_[shard.layout].shards.size();
  }

 private:
  struct Shard {
    std::vector<BlockSpan> spans;
    std::vector<std::uint32_t> first;  // number of each span's first block
    std::uint32_t blocks = 0;
    Bytes bytes;
  };
  struct LayoutShards {
    std::string name;
    std::vector<Shard> shards;
  };
  [[nodiscard]] const Shard& at(ShardId shard) const {
    return shard == kWholeModel ? whole_ : layouts_[shard.layout].shards[shard.rank];
  }

  std::string job_;
  std::string model_;
  Bytes block_size_;
  std::vector<Bytes> block_bytes_;
  std::vector<LayoutShards> layouts_;
  Shard whole_;
};

// The space of a weight map: its blocks and all of its layouts. O(blocks + segments x shards).
[[nodiscard]] ModelSpace space_of(std::string job, std::string model, const WeightMap& map);

}  // namespace holdfast
