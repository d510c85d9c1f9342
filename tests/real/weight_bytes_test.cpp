#include "real/weight_bytes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/engine/digest.hpp"
#include "real/layout_placement.hpp"

namespace holdfast::real {
namespace {

// A small model with all kinds of cuts, layers and experts.
Manifest small(const std::string& name = "m") {
  std::vector<Tensor> tensors{
      {"model.embed_tokens.weight", DType::BF16, {64, 24}},
      {"model.norm.weight", DType::F32, {24}},
      {"lm_head.weight", DType::BF16, {64, 24}},
      {"scalar", DType::F32, {}},
      {"nothing", DType::F32, {0, 4}},
  };
  for (int layer = 0; layer < 4; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    tensors.push_back({prefix + "self_attn.q_proj.weight", DType::BF16, {32, 24}});
    tensors.push_back({prefix + "self_attn.o_proj.weight", DType::BF16, {24, 32}});
    tensors.push_back({prefix + "input_layernorm.weight", DType::BF16, {23}});
    for (int expert = 0; expert < 4; ++expert) {
      const std::string inner = prefix + "mlp.experts." + std::to_string(expert) + ".";
      tensors.push_back({inner + "up_proj.weight", DType::U8, {16, 24}});
      tensors.push_back({inner + "down_proj.weight", DType::U8, {24, 16}});
    }
  }
  return Manifest(name, tensors);
}

std::vector<BlockSpan> everything(const WeightMap& map) {
  return {{BlockId(0U), static_cast<std::uint32_t>(map.blocks())}};
}

// Any range of a tensor has the same bytes as that range of the whole.
TEST(WeightBytes, RangesAreRangesOfTheWhole) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const Manifest manifest("m", {{"a", DType::U8, {3000}}});
  const WeightBytes bytes(manifest, {1, 1});
  std::vector<std::byte> whole(3000);
  bytes.fill(0, 0, whole);
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t offset = random() % 3000;
    std::vector<std::byte> part(random() % (3000 - offset + 1));
    bytes.fill(0, offset, part);
    ASSERT_TRUE(
        std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)))
        << "seed " << seed;
    EXPECT_EQ(bytes.first_wrong(0, offset, part), std::nullopt);
    if (part.empty()) continue;
    const std::size_t at = random() % part.size();
    part[at] ^= static_cast<std::byte>(1U << (random() % 8));
    part.back() ^= std::byte{at + 1 == part.size() ? std::uint8_t{0} : std::uint8_t{1}};
    EXPECT_EQ(bytes.first_wrong(0, offset, part), offset + at) << "seed " << seed;
  }
}

// It must not change from one machine or version of the program to the next within a run; and
// model, version and name all count.
TEST(WeightBytes, DependOnEverything) {
  const auto digest = [](const Manifest& manifest, Version version, std::size_t tensor) {
    std::vector<std::byte> bytes(manifest.bytes(tensor).count());
    WeightBytes(manifest, version).fill(tensor, 0, bytes);
    return block_digest(bytes);
  };
  std::set<std::uint64_t> seen;
  seen.insert(digest(small(), {1, 1}, 0));
  seen.insert(digest(small("n"), {1, 1}, 0));
  seen.insert(digest(small(), {1, 2}, 0));
  seen.insert(digest(small(), {2, 1}, 0));
  for (std::size_t t = 1; t < small().tensors().size(); ++t) {
    if (small().bytes(t) > Bytes(4)) seen.insert(digest(small(), {1, 1}, t));
  }
  EXPECT_EQ(seen.size(), 4U + 46U);  // all tensors but the scalar, the empty and the first
  std::set<std::uint64_t> words;
  const Manifest manifest("m", {{"a", DType::U64, {10'000}}});
  std::vector<std::uint64_t> values(10'000);
  WeightBytes(manifest, {1, 1}).fill(0, 0, std::as_writable_bytes(std::span(values)));
  words.insert(values.begin(), values.end());
  EXPECT_EQ(words.size(), values.size());
}

// A trainer fills by blocks, the verifier walks tensors: they agree for every layout and shard, and
// every byte of a shard is reached.
TEST(WeightBytes, TrainerAndVerifierAgree) {
  const Manifest manifest = small();
  const std::vector<Layout> layouts{{"tp1", 1},    {"tp2", 2},          {"tp4", 4},
                                    {"pp2", 2, 2}, {"ep2", 2, 1, 2, 1}, {"mix", 2, 4, 4, 2}};
  const WeightMap map(manifest, layouts, Bytes(4096));
  const WeightBytes bytes(manifest, {3, 4});
  for (std::size_t l = 0; l < layouts.size(); ++l) {
    for (std::uint32_t shard = 0; shard < layouts[l].shards(); ++shard) {
      const LayoutPlacement placement(map, {{l, shard}});
      std::vector<std::byte> memory(placement.region_bytes(WorkerId(0U)).count(), kPoison);
      std::vector<BlockSpan> held;
      for (std::uint32_t b = 0; b < map.blocks(); ++b) {
        if (!map.local_runs(l, shard, BlockId(b)).empty()) held.push_back({BlockId(b), 1});
      }
      EXPECT_TRUE(first_wrong_byte(bytes, manifest, layouts[l], shard, memory));
      fill_blocks(bytes, manifest, map, placement, WorkerId(0U), held, memory);
      const auto wrong = first_wrong_byte(bytes, manifest, layouts[l], shard, memory);
      EXPECT_FALSE(wrong) << layouts[l].name << " " << shard << ": " << wrong->tensor << " "
                          << wrong->offset;
      memory[memory.size() / 2] ^= std::byte{1};
      EXPECT_TRUE(first_wrong_byte(bytes, manifest, layouts[l], shard, memory));
      memory[memory.size() / 2] ^= std::byte{1};
      const WeightBytes next(manifest, {3, 5});
      EXPECT_TRUE(first_wrong_byte(next, manifest, layouts[l], shard, memory));
      EXPECT_TRUE(first_wrong_byte(bytes, manifest, layouts[l], shard,
                                   std::span(memory).first(memory.size() - 1)));
      memory.push_back(kPoison);
      EXPECT_TRUE(first_wrong_byte(bytes, manifest, layouts[l], shard, memory));
    }
  }
}

// The same blocks in two layouts and in the whole model have the same digests.
TEST(WeightBytes, BlocksAreTheSameInEveryLayout) {
  const Manifest manifest = small();
  const WeightMap map(manifest, {{"tp1", 1}, {"tp4", 4}}, Bytes(4096));
  const WeightBytes bytes(manifest, {1, 1});
  std::vector<HeldShard> workers{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {}};
  const LayoutPlacement placement(map, workers);
  std::vector<std::uint64_t> expected(map.blocks());
  for (std::uint32_t w = 0; w < workers.size(); ++w) {
    const WorkerId worker(w);
    std::vector<std::byte> memory(placement.region_bytes(worker).count());
    for (std::uint32_t b = 0; b < map.blocks(); ++b) {
      std::vector<Extent> extents;
      placement.append_extents(worker, BlockId(b), extents);
      if (extents.empty()) continue;
      const std::vector<BlockSpan> one{{BlockId(b), 1}};
      fill_blocks(bytes, manifest, map, placement, worker, one, memory);
      BlockDigester digester;
      for (const Extent& extent : extents) {
        EXPECT_GT(extent.bytes, 0U);
        digester.add(std::span(memory).subspan(extent.offset, extent.bytes));
      }
      const std::uint64_t digest = digester.finish();
      if (expected[b] == 0) expected[b] = digest;
      EXPECT_EQ(digest, expected[b]) << "worker " << w << " block " << b;
    }
  }
  const PackedPlacement packed([&] {
    std::vector<Bytes> sizes;
    for (std::uint32_t b = 0; b < map.blocks(); ++b) sizes.push_back(map.bytes_of(BlockId(b)));
    return sizes;
  }());
  std::vector<std::byte> memory(packed.region_bytes(WorkerId(0U)).count());
  fill_blocks(bytes, manifest, map, packed, WorkerId(0U), everything(map), memory);
  for (std::uint32_t b = 0; b < map.blocks(); ++b) {
    const Extent extent = packed.extent(BlockId(b));
    EXPECT_EQ(block_digest(std::span(memory).subspan(extent.offset, extent.bytes)), expected[b]);
  }
}

}  // namespace
}  // namespace holdfast::real
