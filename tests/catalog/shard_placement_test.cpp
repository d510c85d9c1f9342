// Placements of running transfers.
#include <gtest/gtest.h>

#include "core/catalog/shard_placement.hpp"

namespace holdfast {
namespace {

// Who joins a running plan is in a later revision of it, beside the earlier one that others use.
TEST(ShardPlacements, KnowWhoJoinedInALaterRevision) {
  auto space = std::make_shared<ModelSpace>("job", "model", Bytes(10),
                                            std::vector<Bytes>{Bytes(10), Bytes(7)});
  space->add_layout("tp2", {{{BlockId(0U), 1}}, {{BlockId(1U), 1}}});
  ShardPlacements placements({space});
  PlannedTransfer transfer;
  transfer.id = 1;
  transfer.space = SpaceId(0U);
  transfer.shards = {ShardId{0, 0}, ShardId{0, 0}};
  const auto first = placements.of(transfer);
  EXPECT_EQ(placements.of(transfer), first);
  transfer.revision = 1;
  transfer.shards[1] = {0, 1};
  const auto second = placements.of(transfer);
  EXPECT_EQ(first->region_bytes(WorkerId(1U)), Bytes(10));
  EXPECT_EQ(second->region_bytes(WorkerId(1U)), Bytes(7));
}

}  // namespace
}  // namespace holdfast
