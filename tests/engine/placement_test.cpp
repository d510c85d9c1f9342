#include "core/engine/placement.hpp"

#include <gtest/gtest.h>

#include <random>

namespace holdfast {
namespace {

TEST(Placement, PackedBlocksLieBackToBack) {
  const std::vector<Bytes> sizes{Bytes(10), Bytes(3), Bytes(7)};
  const PackedPlacement placement(sizes);
  EXPECT_EQ(placement.region_bytes(WorkerId(0U)), Bytes(20));
  std::vector<Extent> extents;
  placement.append_extents(WorkerId(1U), BlockId(2U), extents);
  ASSERT_EQ(extents.size(), 1U);
  EXPECT_EQ(extents[0].offset, 13U);
  EXPECT_EQ(extents[0].bytes, 7U);
}

std::vector<Extent> random_extents(std::mt19937_64& random, std::uint64_t bytes) {
  std::vector<Extent> extents;
  std::uint64_t at = random() % 100;
  while (bytes > 0) {
    const std::uint64_t part = std::min<std::uint64_t>(bytes, 1 + random() % 40);
    extents.push_back({at, part});
    at += part + random() % 5;
    bytes -= part;
  }
  return extents;
}

std::vector<std::uint64_t> offsets(const std::vector<Extent>& extents) {
  std::vector<std::uint64_t> all;
  for (const Extent& extent : extents) {
    for (std::uint64_t i = 0; i < extent.bytes; ++i) all.push_back(extent.offset + i);
  }
  return all;
}

// The k-th byte of the block goes from the k-th byte at the source to the k-th at the destination.
TEST(Placement, PiecesPairBytes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t bytes = 1 + random() % 300;
    const auto source = random_extents(random, bytes);
    const auto destination = random_extents(random, bytes);
    std::vector<Piece> pieces;
    append_pieces(source, destination, pieces);
    std::vector<std::uint64_t> from;
    std::vector<std::uint64_t> to;
    for (const Piece& piece : pieces) {
      ASSERT_GT(piece.bytes, 0U);
      for (std::uint64_t i = 0; i < piece.bytes; ++i) {
        from.push_back(piece.remote_offset + i);
        to.push_back(piece.local_offset + i);
      }
    }
    ASSERT_EQ(from, offsets(source));
    ASSERT_EQ(to, offsets(destination));
    ASSERT_LT(pieces.size(), source.size() + destination.size());
  }
}

}  // namespace
}  // namespace holdfast
