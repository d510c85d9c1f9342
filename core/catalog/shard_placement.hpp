// Where the blocks of a version lie when each worker keeps its shard, and nothing else, in a region
// of its own: the shard's blocks back to back in ascending order. Used in simulation, in the fuzzer
// and in tests; layouts of real frameworks, with strided runs, come as other Placements.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/catalog/messages.hpp"
#include "core/catalog/model_space.hpp"
#include "core/engine/placement.hpp"

namespace holdfast {

// What an agent's loop has to know about memory layouts. Calls may come from any of the threads
// that share one object only if its implementation says so.
class Placements {
 public:
  Placements() = default;
  Placements(const Placements&) = delete;
  Placements& operator=(const Placements&) = delete;
  virtual ~Placements() = default;

  // For all workers of a transfer, by WorkerId. Asked once for each transfer that is started.
  virtual std::shared_ptr<const Placement> of(const PlannedTransfer& transfer) = 0;
  // Appends the block's extents in a region with that shard, in the block's order. Precondition:
  // the shard holds it.
  virtual void append_extents(SpaceId space, ShardId shard, BlockId block,
                              std::vector<Extent>& out) = 0;
};

// Offsets of one shard's blocks, shared by all who hold it. Immutable.
class ShardOffsets {
 public:
  // The space must outlive it. O(blocks of the shard).
  ShardOffsets(const ModelSpace& space, ShardId shard);
  // O(log spans). Precondition: the shard holds the block.
  [[nodiscard]] Extent extent(BlockId block) const;
  [[nodiscard]] Bytes bytes() const { return Bytes(start_.back()); }

 private:
  const ModelSpace& space_;
  ShardId shard_;
  std::vector<std::uint64_t> start_;  // by number in the shard, one more than blocks
};

// Immutable; threads may share it.
class ShardPlacement final : public Placement {
 public:
  // By WorkerId; keeps the space alive.
  ShardPlacement(std::shared_ptr<const ModelSpace> space,
                 std::vector<std::shared_ptr<const ShardOffsets>> workers);
  void append_extents(WorkerId worker, BlockId block, std::vector<Extent>& out) const override;
  [[nodiscard]] Bytes region_bytes(WorkerId worker) const override;

 private:
  std::shared_ptr<const ModelSpace> space_;
  std::vector<std::shared_ptr<const ShardOffsets>> workers_;
};

// ShardPlacements for all spaces; offsets are computed once for each (space, shard), the placement
// of the transfers that were asked for last is kept. One thread.
class ShardPlacements final : public Placements {
 public:
  // By SpaceId.
  explicit ShardPlacements(std::vector<std::shared_ptr<const ModelSpace>> spaces);
  std::shared_ptr<const Placement> of(const PlannedTransfer& transfer) override;
  void append_extents(SpaceId space, ShardId shard, BlockId block,
                      std::vector<Extent>& out) override;

 private:
  const std::shared_ptr<const ShardOffsets>& offsets(SpaceId space, ShardId shard);

  std::vector<std::shared_ptr<const ModelSpace>> spaces_;
  std::map<std::pair<SpaceId, ShardId>, std::shared_ptr<const ShardOffsets>> offsets_;
  // By plan and revision, of transfers that somebody still carries out: who joins is in a later
  // one.
  std::map<std::pair<PlanNumber, std::uint32_t>, std::weak_ptr<const Placement>> transfers_;
};

}  // namespace holdfast
