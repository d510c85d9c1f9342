// The weight map against an oracle that looks at every byte of small random models.
//
// Oracle: a byte belongs to an element, the element has an index in each dimension, and a shard
// holds it if its index in the cut dimension lies in the shard's part. A shard's memory is then the
// bytes that it holds, in model order, because a slice of a row-major tensor keeps the order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast {
namespace {

using Shards = std::vector<std::uint32_t>;
using Signature = std::vector<Shards>;

std::vector<std::uint64_t> expand(const std::vector<Run>& runs) {
  std::vector<std::uint64_t> offsets;
  for (const Run& run : runs) {
    for (std::uint64_t piece = 0; piece < run.count; ++piece) {
      for (std::uint64_t i = 0; i < run.length; ++i) {
        offsets.push_back(run.offset + piece * run.stride + i);
      }
    }
  }
  return offsets;
}

void expect_canonical(const std::vector<Run>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ASSERT_GT(runs[i].length, 0U);
    ASSERT_GT(runs[i].count, 0U);
    if (runs[i].count == 1) {
      EXPECT_EQ(runs[i].stride, 0U);
    } else {
      EXPECT_GT(runs[i].stride, runs[i].length) << "touching pieces must be one";
    }
    if (i == 0 || runs[i].count > 1 || runs[i - 1].count > 1) continue;
    EXPECT_NE(runs[i - 1].offset + runs[i - 1].length, runs[i].offset) << "run " << i;
  }
}

struct ByteInfo {
  std::uint64_t into_element = 0;
  std::uint64_t element = 1;  // its size
  Signature signature;
};

std::vector<ByteInfo> describe(const Manifest& manifest, const std::vector<Layout>& layouts) {
  std::vector<ByteInfo> bytes;
  for (std::size_t t = 0; t < manifest.tensors().size(); ++t) {
    const Tensor& tensor = manifest.tensors()[t];
    const TensorCut cut = cut_of(tensor);
    const std::size_t dimension = cut == TensorCut::Columns ? 1 : 0;
    const std::uint64_t element = bytes_of(tensor.dtype);
    for (std::uint64_t i = 0; i < manifest.bytes(t).count(); ++i) {
      ByteInfo info{i % element, element, {}};
      std::uint64_t rest = i / element;
      std::vector<std::uint64_t> index(tensor.shape.size());
      for (std::size_t d = tensor.shape.size(); d-- > 0;) {
        index[d] = rest % tensor.shape[d];
        rest /= tensor.shape[d];
      }
      for (const Layout& layout : layouts) {
        Shards shards(layout.tensor_parallel);
        std::iota(shards.begin(), shards.end(), 0U);
        if (cut != TensorCut::Replicated) {
          const std::uint64_t part = tensor.shape[dimension] / layout.tensor_parallel;
          shards = {static_cast<std::uint32_t>(index[dimension] / part)};
        }
        info.signature.push_back(shards);
      }
      bytes.push_back(std::move(info));
    }
  }
  return bytes;
}

void check_against_oracle(const WeightMap& map, const Manifest& manifest) {
  const std::vector<Layout> layouts(map.layouts().begin(), map.layouts().end());
  const std::vector<ByteInfo> bytes = describe(manifest, layouts);
  ASSERT_EQ(bytes.size(), manifest.total().count());
  std::map<Signature, std::vector<std::uint64_t>> expected;
  for (std::size_t i = 0; i < bytes.size(); ++i) expected[bytes[i].signature].push_back(i);

  // local[l][s][byte]: where shard s of layout l keeps it.
  std::vector<std::vector<std::vector<std::uint64_t>>> local(layouts.size());
  for (std::size_t l = 0; l < layouts.size(); ++l) {
    local[l].assign(layouts[l].tensor_parallel, std::vector<std::uint64_t>(bytes.size()));
    std::vector<std::uint64_t> used(layouts[l].tensor_parallel);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const std::uint32_t s : bytes[i].signature[l]) local[l][s][i] = used[s]++;
    }
    for (std::uint32_t s = 0; s < layouts[l].tensor_parallel; ++s) {
      EXPECT_EQ(map.shard_bytes(l, s), Bytes(used[s]));
    }
  }

  ASSERT_EQ(map.segments().size(), expected.size());
  std::size_t block = 0;
  std::size_t segment_index = 0;
  for (const auto& [signature, offsets] : expected) {
    SCOPED_TRACE("segment " + std::to_string(segment_index));
    const Segment& segment = map.segments()[segment_index];
    EXPECT_EQ(segment.shards, signature);
    EXPECT_EQ(segment.bytes, Bytes(offsets.size()));
    EXPECT_EQ(expand(segment.runs), offsets);
    expect_canonical(segment.runs);
    EXPECT_EQ(segment.first_block, BlockId(block));
    std::vector<std::uint64_t> of_blocks;
    for (std::uint32_t k = 0; k < segment.blocks; ++k, ++block) {
      SCOPED_TRACE("block " + std::to_string(block));
      const BlockId id(block);
      EXPECT_EQ(map.segment_of(id), SegmentId(segment_index));
      const auto runs = map.model_runs(id);
      expect_canonical(runs);
      const auto places = expand(runs);
      ASSERT_FALSE(places.empty());
      EXPECT_EQ(map.bytes_of(id), Bytes(places.size()));
      EXPECT_LE(map.bytes_of(id), map.block_size());
      EXPECT_EQ(bytes[places.front()].into_element, 0U) << "an element is split";
      of_blocks.insert(of_blocks.end(), places.begin(), places.end());
      if (of_blocks.size() < offsets.size()) {
        const ByteInfo& next = bytes[offsets[of_blocks.size()]];
        EXPECT_GT(places.size() + next.element, map.block_size().count()) << "one more would fit";
      }
      for (std::size_t l = 0; l < layouts.size(); ++l) {
        for (std::uint32_t s = 0; s < layouts[l].tensor_parallel; ++s) {
          std::vector<std::uint64_t> where;
          if (std::count(signature[l].begin(), signature[l].end(), s) > 0) {
            for (const std::uint64_t i : places) where.push_back(local[l][s][i]);
          }
          const auto local_runs = map.local_runs(l, s, id);
          ASSERT_EQ(expand(local_runs), where) << "layout " << l << " shard " << s;
          expect_canonical(local_runs);
        }
      }
    }
    EXPECT_EQ(of_blocks, offsets);
    ++segment_index;
  }
  EXPECT_EQ(map.blocks(), block);
}

struct Example {
  std::vector<Tensor> tensors;
  std::vector<Layout> layouts;
  Bytes block_size;
};

Example random_example(std::mt19937_64& random) {
  const auto upto = [&](std::uint64_t n) { return random() % n; };
  static const std::vector<std::vector<std::uint32_t>> kParallel{
      {1},    {2},       {3},    {8},    {1, 1}, {2, 1},   {2, 3},
      {4, 2}, {8, 1, 4}, {3, 4}, {6, 4}, {5},    {1, 2, 3}};
  static const std::vector<std::string> kModules{
      "self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj", "mlp.gate_proj",
      "input_layernorm",  "self_attn.k_norm", "mlp.up_proj",   "unheard_of"};
  Example example;
  std::uint64_t multiple = 1;
  for (const std::uint32_t parallel : kParallel[upto(kParallel.size())]) {
    example.layouts.push_back({"layout" + std::to_string(example.layouts.size()), parallel});
    multiple = std::lcm(multiple, std::uint64_t{parallel});
  }
  const std::size_t count = 1 + upto(7);
  for (std::size_t i = 0; i < count; ++i) {
    Tensor tensor;
    tensor.name = "l." + std::to_string(i) + "." + kModules[upto(kModules.size())] +
                  (upto(2) == 0 ? ".weight" : ".bias");
    static constexpr DType kTypes[] = {DType::U8, DType::BF16, DType::F32, DType::F64};
    tensor.dtype = kTypes[upto(4)];
    const std::size_t rank = upto(4);
    for (std::size_t d = 0; d < rank; ++d) {
      tensor.shape.push_back(d < 2 ? multiple * (1 + upto(60 / multiple + 1)) : 1 + upto(4));
    }
    if (upto(12) == 0 && rank > 0) tensor.shape[upto(rank)] = 0;
    example.tensors.push_back(std::move(tensor));
  }
  example.tensors.push_back({"z.scalar", DType::F32, {}});
  // Also sizes that no element size divides.
  example.block_size = Bytes(4096 + upto(3) * upto(2000));
  return example;
}

TEST(WeightMapProperty, AgreesWithAByteByByteOracle) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Example example = random_example(random);
    const Manifest manifest("m", example.tensors);
    const WeightMap map(manifest, example.layouts, example.block_size);
    check_against_oracle(map, manifest);
    if (HasFailure()) return;
  }
}

// Stretches of three bytes and blocks of 4,096: the second block begins one byte into a stretch,
// the third two.
TEST(WeightMapProperty, NarrowColumns) {
  const Manifest manifest("m", {{"a.o_proj.weight", DType::U8, {3000, 6}}});
  const WeightMap map(manifest, {{"two", 2}}, Bytes(4096));
  EXPECT_EQ(map.blocks(), 6U);
  check_against_oracle(map, manifest);
}

// A late layout is taken exactly if each segment stays on one set of shards, and changes no block.
TEST(WeightMapProperty, LateLayouts) {
  int taken = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Example example = random_example(random);
    const Manifest manifest("m", example.tensors);
    WeightMap map(manifest, example.layouts, example.block_size);
    for (const std::uint32_t parallel : {1U, 2U, 4U}) {
      const Layout late{"late" + std::to_string(parallel), parallel};
      bool divides = true;
      for (const Tensor& tensor : manifest.tensors()) {
        const TensorCut cut = cut_of(tensor);
        if (cut == TensorCut::Replicated || *bytes_of(tensor) == 0) continue;
        divides = divides && tensor.shape[cut == TensorCut::Columns ? 1 : 0] % parallel == 0;
      }
      if (!divides) {
        EXPECT_THROW(static_cast<void>(map.separates(late)), Error);
        EXPECT_THROW(map.add_layout(late), Error);
        continue;
      }
      const auto bytes = describe(manifest, {late});
      bool separates = false;
      for (const Segment& segment : map.segments()) {
        const auto offsets = expand(segment.runs);
        separates = separates || std::any_of(offsets.begin(), offsets.end(), [&](std::uint64_t i) {
                      return bytes[i].signature != bytes[offsets.front()].signature;
                    });
      }
      EXPECT_EQ(map.separates(late), separates) << parallel;
      std::vector<std::vector<holdfast::Run>> before;
      for (std::size_t b = 0; b < map.blocks(); ++b) before.push_back(map.model_runs(BlockId(b)));
      const std::size_t layouts = map.layouts().size();
      if (separates) {
        EXPECT_THROW(map.add_layout(late), Error);
        EXPECT_EQ(map.layouts().size(), layouts);
        ++refused;
      } else {
        map.add_layout(late);
        ++taken;
      }
      ASSERT_EQ(map.blocks(), before.size());
      for (std::size_t b = 0; b < map.blocks(); ++b) {
        EXPECT_EQ(map.model_runs(BlockId(b)), before[b]);
      }
      check_against_oracle(map, manifest);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(taken, 20);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace holdfast
