#include "core/catalog/shard_placement.hpp"

namespace holdfast {

ShardOffsets::ShardOffsets(const ModelSpace& space, ShardId shard) : space_(space), shard_(shard) {
  start_.reserve(space.blocks(shard) + std::size_t{1});
  std::uint64_t at = 0;
  start_.push_back(at);
  for (const BlockSpan& span : space.spans(shard)) {
    for (std::uint32_t i = 0; i < span.count; ++i) {
      at += space.block_bytes()[span.first.index() + i].count();
      start_.push_back(at);
    }
  }
}

Extent ShardOffsets::extent(BlockId block) const {
  const std::uint32_t number = *space_.number(shard_, block);
  return {start_[number], start_[number + 1] - start_[number]};
}

ShardPlacement::ShardPlacement(std::shared_ptr<const ModelSpace> space,
                               std::vector<std::shared_ptr<const ShardOffsets>> workers)
    : space_(std::move(space)), workers_(std::move(workers)) {}

void ShardPlacement::append_extents(WorkerId worker, BlockId block,
                                    std::vector<Extent>& out) const {
  out.push_back(workers_[worker.index()]->extent(block));
}

Bytes ShardPlacement::region_bytes(WorkerId worker) const {
  return workers_[worker.index()]->bytes();
}

ShardPlacements::ShardPlacements(std::vector<std::shared_ptr<const ModelSpace>> spaces)
    : spaces_(std::move(spaces)) {}

const std::shared_ptr<const ShardOffsets>& ShardPlacements::offsets(SpaceId space, ShardId shard) {
  std::shared_ptr<const ShardOffsets>& found = offsets_[{space, shard}];
  if (!found) found = std::make_shared<const ShardOffsets>(*spaces_[space.index()], shard);
  return found;
}

std::shared_ptr<const Placement> ShardPlacements::of(const PlannedTransfer& transfer) {
  std::erase_if(transfers_, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<const Placement>& known = transfers_[{transfer.id, transfer.revision}];
  if (auto placement = known.lock()) return placement;
  std::vector<std::shared_ptr<const ShardOffsets>> workers;
  workers.reserve(transfer.shards.size());
  for (const ShardId shard : transfer.shards) workers.push_back(offsets(transfer.space, shard));
  auto placement =
      std::make_shared<const ShardPlacement>(spaces_[transfer.space.index()], std::move(workers));
  known = placement;
  return placement;
}

void ShardPlacements::append_extents(SpaceId space, ShardId shard, BlockId block,
                                     std::vector<Extent>& out) {
  out.push_back(offsets(space, shard)->extent(block));
}

}  // namespace holdfast
