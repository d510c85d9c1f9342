#include "core/weights/weight_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/weights/presets.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Piece = Run;  // inside a test `Run` is its own function
using Shards = std::vector<std::uint32_t>;

Manifest small() {
  return Manifest("m", {{"a.down_proj.weight", DType::BF16, {4, 2048}},  // 16 KiB, by columns
                        {"b.norm.weight", DType::F32, {8}},              // 32 B, replicated
                        {"c.up_proj.weight", DType::BF16, {2048, 4}}});  // 16 KiB, by rows
}

Error refusal(const Manifest& manifest, std::vector<Layout> layouts, Bytes block_size) {
  try {
    const WeightMap map(manifest, std::move(layouts), block_size);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "not refused";
  return Error(ErrorCode::Unsupported, "");
}

// Worked by hand. TP=2: shard 0 holds columns 0..1023 of a (2,048 of every 4,096 bytes), all of b
// and rows 0..1023 of c (8,192 bytes), shard 1 the rest. b begins at 16,384 and c at 16,416.
TEST(WeightMap, SegmentsAndRunsByHand) {
  const WeightMap map(small(), {{"two", 2}}, Bytes(6000));
  ASSERT_EQ(map.segments().size(), 3U);
  EXPECT_THAT(map.segments()[0].shards, ElementsAre(Shards{0}));
  EXPECT_THAT(map.segments()[1].shards, ElementsAre(Shards{0, 1}));
  EXPECT_THAT(map.segments()[2].shards, ElementsAre(Shards{1}));
  EXPECT_THAT(map.model_runs(SegmentId(2U)),
              ElementsAre(Piece{2048, 2048, 4096, 4}, Piece{24608, 8192, 0, 1}));
  EXPECT_THAT(map.model_runs(SegmentId(1U)), ElementsAre(Piece{16384, 32, 0, 1}));
  // 16,384 bytes in blocks of at most 6,000: three, then the replicated one, then three.
  EXPECT_EQ(map.blocks(), 7U);
  EXPECT_EQ(map.bytes_of(BlockId(2U)), Bytes(16384 - 12000));
  EXPECT_EQ(map.segments()[1].first_block, BlockId(3U));
  // The second block of shard 1's segment: bytes 6,000 .. 11,999. The first 8,192 are of a.
  EXPECT_THAT(map.model_runs(BlockId(5U)),
              ElementsAre(Piece{2 * 4096 + 2048 + 1904, 144, 0, 1},
                          Piece{3 * 4096 + 2048, 2048, 0, 1}, Piece{24608, 3808, 0, 1}));
  EXPECT_THAT(map.local_runs(0, 1, BlockId(5U)),
              ElementsAre(Piece{6000, 2192, 0, 1}, Piece{8192 + 32, 3808, 0, 1}));
  EXPECT_TRUE(map.local_runs(0, 0, BlockId(5U)).empty());
  EXPECT_TRUE(map.local_runs(0, 2, BlockId(5U)).empty());
  EXPECT_EQ(map.shard_bytes(0, 1), Bytes(16384 + 32));
}

TEST(WeightMap, OneShardIsOneSegment) {
  const WeightMap map(small(), {{"whole", 1}, {"also", 1}}, Bytes(4096));
  ASSERT_EQ(map.segments().size(), 1U);
  EXPECT_THAT(map.model_runs(SegmentId(0U)), ElementsAre(Piece{0, 32800, 0, 1}));
  EXPECT_THAT(map.segments()[0].shards, ElementsAre(Shards{0}, Shards{0}));
  EXPECT_EQ(map.blocks(), 9U);
}

TEST(WeightMap, LayoutsTogether) {
  const WeightMap map(small(), {{"two", 2}, {"one", 1}, {"four", 4}}, Bytes(4096));
  ASSERT_EQ(map.segments().size(), 5U);
  EXPECT_THAT(map.segments()[1].shards, ElementsAre(Shards{0}, Shards{0}, Shards{1}));
  EXPECT_THAT(map.segments()[2].shards, ElementsAre(Shards{0, 1}, Shards{0}, Shards{0, 1, 2, 3}));
}

TEST(WeightMap, OutlivesItsManifest) {
  const auto make = [] { return WeightMap(small(), {{"two", 2}}, Bytes(4096)); };
  const WeightMap map = make();
  const WeightMap copy = map;
  EXPECT_EQ(copy.model_runs(BlockId(0U)), map.model_runs(BlockId(0U)));
}

// A block may not end within an element: 4,097 bytes hold 1,024 elements of four.
TEST(WeightMap, NeverSplitsAnElement) {
  const WeightMap map(Manifest("m", {{"x.norm", DType::F32, {4096}}}), {{"one", 1}}, Bytes(4099));
  EXPECT_EQ(map.blocks(), 4U);
  for (std::uint32_t b = 0; b < 4; ++b) EXPECT_EQ(map.bytes_of(BlockId(b)), Bytes(4096));
}

TEST(WeightMap, RefusesUnevenDivision) {
  const Error error = refusal(small(), {{"two", 2}, {"three", 3}}, Bytes(4096));
  EXPECT_EQ(error.code(), ErrorCode::LayoutMismatch);
  EXPECT_THAT(error.message(), HasSubstr("'three'"));
  EXPECT_THAT(error.message(), HasSubstr("dimension 1 of tensor 'a.down_proj.weight'"));
  EXPECT_THAT(error.message(), HasSubstr("2048"));
}

TEST(WeightMap, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal(small(), {}, Bytes(4096)).code(), ErrorCode::LayoutMismatch);
  EXPECT_EQ(refusal(small(), {{"none", 0}}, Bytes(4096)).code(), ErrorCode::LayoutMismatch);
  EXPECT_EQ(refusal(small(), {{"same", 1}, {"same", 2}}, Bytes(4096)).code(),
            ErrorCode::LayoutMismatch);
  EXPECT_EQ(refusal(small(), {{"one", 1}}, Bytes(4095)).code(), ErrorCode::BadValue);
  EXPECT_EQ(refusal(small(), {{"huge", (1U << 14) + 1}}, Bytes(4096)).code(),
            ErrorCode::LimitExceeded);
}

TEST(WeightMap, LimitsTheNumberOfBlocks) {
  // 2^24 blocks of 4 KiB are 64 GiB: that much passes, four bytes more do not.
  const std::uint64_t elements = std::uint64_t{1} << 34;
  const WeightMap map(Manifest("m", {{"x.norm", DType::F32, {elements}}}), {{"one", 1}},
                      Bytes(4096));
  EXPECT_EQ(map.blocks(), std::size_t{1} << 24);
  EXPECT_EQ(
      refusal(Manifest("m", {{"x.norm", DType::F32, {elements + 1}}}), {{"one", 1}}, Bytes(4096))
          .code(),
      ErrorCode::LimitExceeded);
}

TEST(WeightMap, LateLayout) {
  WeightMap map(small(), {{"four", 4}}, Bytes(4096));
  EXPECT_FALSE(map.separates({"two", 2}));
  map.add_layout({"two", 2});
  EXPECT_THAT(map.segments()[1].shards, ElementsAre(Shards{0, 1, 2, 3}, Shards{0, 1}));
  EXPECT_TRUE(map.separates({"eight", 8}));
  try {
    map.add_layout({"eight", 8});
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::LayoutMismatch);
    EXPECT_THAT(error.message(), HasSubstr("'eight'"));
  }
  EXPECT_THROW(map.add_layout({"two", 1}), Error);
}

// The shards of the 70B model: an eighth of what is divided and all of the norms,
// 161 tensors of 8,192 BF16 elements.
TEST(WeightMap, SeventyBillionParametersAtEight) {
  const Manifest manifest = preset_manifest("llama-3.1-70b");
  const std::uint64_t norms = 161 * 8192 * 2;
  const WeightMap map(manifest, {{"eight", 8}}, Bytes(manifest.total().count() / 8 / 1024));
  ASSERT_EQ(map.segments().size(), 9U);
  EXPECT_EQ(map.shard_bytes(0, 7), Bytes((manifest.total().count() - norms) / 8 + norms));
  EXPECT_EQ(map.segments()[1].bytes, Bytes(norms));
  EXPECT_GE(map.blocks(), 8192U);
  EXPECT_LE(map.blocks(), 8192U + 9);
  Bytes sum;
  for (std::size_t b = 0; b < map.blocks(); ++b) sum += map.bytes_of(BlockId(b));
  EXPECT_EQ(sum, manifest.total());
}

}  // namespace
}  // namespace holdfast
