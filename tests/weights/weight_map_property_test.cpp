// The weight map against an oracle that looks at every byte of small random models.
//
// Oracle: a byte belongs to an element, the element has an index in each dimension, and a shard
// holds it if its stage has the tensor, its expert rank the expert, and its index in the cut
// dimension lies in the shard's part. A shard's memory is then the bytes that it holds, in model
// order, because a slice of a row-major tensor keeps the order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/weights/model_structure.hpp"
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

// A tensor and what its name says, written down apart from the name.
struct Known {
  Tensor tensor;
  StageOf stage = StageOf::Every;
  std::uint32_t layer = 0;
  std::optional<std::uint32_t> expert{};
};

struct Example {
  std::vector<Known> known;
  std::uint32_t layers = 1;
  std::uint32_t experts = 0;
  std::vector<Layout> layouts;
  Bytes block_size;

  [[nodiscard]] Manifest manifest() const {
    std::vector<Tensor> tensors;
    for (const Known& k : known) tensors.push_back(k.tensor);
    return {"m", std::move(tensors)};
  }
  [[nodiscard]] const Known& find(const std::string& name) const {
    return *std::find_if(known.begin(), known.end(),
                         [&](const Known& k) { return k.tensor.name == name; });
  }
};

// The stage of a layer, counted out.
std::uint32_t stage_of(std::uint32_t layer, std::uint32_t layers, std::uint32_t stages) {
  std::vector<std::uint32_t> sizes(stages, layers / stages);
  for (std::uint32_t i = 2; i < layers % stages + 2; ++i) ++sizes[stages - i];
  std::uint32_t stage = 0;
  while (layer >= sizes[stage]) layer -= sizes[stage++];
  return stage;
}

bool stage_has(const Known& k, std::uint32_t stage, const Layout& layout, std::uint32_t layers) {
  const bool first = stage == 0;
  const bool last = stage + 1 == layout.pipeline_parallel;
  switch (k.stage) {
    case StageOf::Layer:
      return stage == stage_of(k.layer, layers, layout.pipeline_parallel);
    case StageOf::First:
      return first;
    case StageOf::Last:
      return last;
    case StageOf::FirstAndLast:
      return first || last;
    case StageOf::Every:
      return true;
  }
  return false;
}

// The shards of a layout that hold element `at` of the `size` of a tensor's cut dimension; of a
// tensor that is not cut, at is 0 and size 1.
Shards holders(const Example& example, const Known& k, const Layout& layout, bool cut,
               std::uint64_t at, std::uint64_t size) {
  const std::uint32_t cuts = static_cast<std::uint32_t>(layout.expert_cuts());
  const std::uint32_t workers = layout.expert_parallel * cuts;
  Shards shards;
  for (std::uint32_t s = 0; s < layout.pipeline_parallel * workers; ++s) {
    const std::uint32_t w = s % workers;
    if (!stage_has(k, s / workers, layout, example.layers)) continue;
    if (k.expert && w / cuts != *k.expert / (example.experts / layout.expert_parallel)) continue;
    const std::uint32_t ranks = k.expert ? cuts : layout.tensor_parallel;
    if (cut && at / (size / ranks) != w % ranks) continue;
    shards.push_back(s);
  }
  return shards;
}

struct ByteInfo {
  std::uint64_t into_element = 0;
  std::uint64_t element = 1;  // its size
  std::size_t signature = 0;  // number in the list
};

struct Described {
  std::vector<ByteInfo> bytes;        // in model order
  std::vector<Signature> signatures;  // each once
};

Described describe(const Example& example, const Manifest& manifest,
                   const std::vector<Layout>& layouts) {
  Described result;
  std::map<Signature, std::size_t> known;
  for (std::size_t t = 0; t < manifest.tensors().size(); ++t) {
    const Tensor& tensor = manifest.tensors()[t];
    const Known& k = example.find(tensor.name);
    const TensorCut cut = cut_of(tensor);
    const std::size_t dimension = cut == TensorCut::Columns ? 1 : 0;
    const std::uint64_t element = bytes_of(tensor.dtype);
    const bool divided = cut != TensorCut::Replicated;
    const std::uint64_t size = divided ? tensor.shape[dimension] : 1;
    std::vector<std::size_t> by_index(size);
    for (std::uint64_t at = 0; at < size; ++at) {
      Signature signature;
      for (const Layout& layout : layouts) {
        signature.push_back(holders(example, k, layout, divided, at, size));
      }
      const auto [found, fresh] = known.emplace(std::move(signature), known.size());
      if (fresh) result.signatures.push_back(found->first);
      by_index[at] = found->second;
    }
    for (std::uint64_t b = 0; b < manifest.bytes(t).count(); ++b) {
      std::vector<std::uint64_t> index(tensor.shape.size());
      std::uint64_t rest = b / element;
      for (std::size_t d = tensor.shape.size(); d-- > 0;) {
        index[d] = rest % tensor.shape[d];
        rest /= tensor.shape[d];
      }
      result.bytes.push_back({b % element, element, by_index[divided ? index[dimension] : 0]});
    }
  }
  return result;
}

void check_against_oracle(const WeightMap& map, const Example& example) {
  const Manifest manifest = example.manifest();
  const std::vector<Layout> layouts(map.layouts().begin(), map.layouts().end());
  const auto [bytes, signatures] = describe(example, manifest, layouts);
  ASSERT_EQ(bytes.size(), manifest.total().count());
  std::map<Signature, std::vector<std::uint64_t>> expected;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    expected[signatures[bytes[i].signature]].push_back(i);
  }

  // local[l][s][byte]: where shard s of layout l keeps it.
  std::vector<std::vector<std::vector<std::uint64_t>>> local(layouts.size());
  for (std::size_t l = 0; l < layouts.size(); ++l) {
    local[l].assign(layouts[l].shards(), std::vector<std::uint64_t>(bytes.size()));
    std::vector<std::uint64_t> used(layouts[l].shards());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const std::uint32_t s : signatures[bytes[i].signature][l]) local[l][s][i] = used[s]++;
    }
    for (std::uint32_t s = 0; s < layouts[l].shards(); ++s) {
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
    const auto all = map.model_runs(SegmentId(segment_index));
    EXPECT_EQ(expand(all), offsets);
    expect_canonical(all);
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
        for (std::uint32_t s = 0; s < layouts[l].shards(); ++s) {
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

// A grid that suits the model, of at most 24 shards.
Layout random_layout(std::mt19937_64& random, const Example& example) {
  while (true) {
    Layout layout;
    layout.name = "layout" + std::to_string(example.layouts.size());
    static constexpr std::uint32_t kCuts[] = {1, 1, 2, 3, 4, 6, 8};
    layout.tensor_parallel = kCuts[random() % 7];
    if (random() % 2 == 0) {
      layout.pipeline_parallel = 1 + static_cast<std::uint32_t>(random() % example.layers);
    }
    if (example.experts > 0 && random() % 3 > 0) {
      layout.expert_parallel = 1 + static_cast<std::uint32_t>(random() % example.experts);
      if (random() % 2 == 0) layout.expert_tensor_parallel = kCuts[random() % 4 + 1];
    }
    if (layout.shards() > 24 || layout.stage_workers() % layout.tensor_parallel != 0) continue;
    if (example.experts % layout.expert_parallel == 0) return layout;
  }
}

void add_tensors(std::mt19937_64& random, std::uint64_t multiple, Example& example) {
  const auto upto = [&](std::uint64_t n) { return random() % n; };
  static const std::vector<std::string> kModules{
      "self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj",       "mlp.gate_proj",
      "input_layernorm",  "self_attn.k_norm", "self_attn.kv_b_proj", "unheard_of"};
  static const std::vector<std::string> kNetwork{"gate_proj", "up_proj", "down_proj"};
  const auto add = [&](const std::string& module, Known known) {
    Tensor& tensor = known.tensor;
    tensor.name = module + (upto(2) == 0 ? ".weight" : ".bias");
    static constexpr DType kTypes[] = {DType::U8, DType::BF16, DType::F32, DType::F64};
    tensor.dtype = kTypes[upto(4)];
    const std::size_t rank = upto(4);
    for (std::size_t d = 0; d < rank; ++d) {
      tensor.shape.push_back(d < 2 ? multiple * (1 + upto(40 / multiple + 1)) : 1 + upto(3));
    }
    if (upto(12) == 0 && rank > 0) tensor.shape[upto(rank)] = 0;
    example.known.push_back(std::move(known));
  };
  for (std::uint32_t l = 0; l < example.layers; ++l) {
    const std::string prefix = "model.layers." + std::to_string(l) + ".";
    for (std::size_t m = 0; m < kModules.size(); ++m) {
      if (m == 4 || upto(4) == 0) add(prefix + kModules[m], {{}, StageOf::Layer, l, {}});
    }
    for (std::uint32_t e = 0; e < example.experts; ++e) {
      if (l > 0 && upto(2) == 0) continue;  // each expert once at least
      add(prefix + "mlp.experts." + std::to_string(e) + "." + kNetwork[upto(3)],
          {{}, StageOf::Layer, l, e});
    }
    if (upto(3) == 0) add(prefix + "mlp.shared_experts.up_proj", {{}, StageOf::Layer, l, {}});
  }
  const bool tied = upto(2) == 0;
  add("model.embed_tokens", {{}, tied ? StageOf::FirstAndLast : StageOf::First, 0, {}});
  if (!tied) add("lm_head", {{}, StageOf::Last, 0, {}});
  if (upto(2) == 0) add("model.norm", {{}, StageOf::Last, 0, {}});
  if (upto(3) == 0) {
    const std::string prefix = "model.layers." + std::to_string(example.layers + 1) + ".";
    add(prefix + "eh_proj", {{}, StageOf::Last, 0, {}});
    add(prefix + "shared_head.head", {{}, StageOf::Last, 0, {}});
    if (example.experts > 0) add(prefix + "mlp.experts.0.up_proj", {{}, StageOf::Last, 0, 0U});
  }
  if (upto(2) == 0) add("visual.layers.0.up_proj", {{}, StageOf::Every, 0, {}});
  example.known.push_back({{"z.scalar", DType::F32, {}}, StageOf::Every, 0, {}});
}

Example random_example(std::mt19937_64& random) {
  Example example;
  example.layers = 1 + static_cast<std::uint32_t>(random() % 5);
  static constexpr std::uint32_t kExperts[] = {0, 0, 2, 3, 4, 6};
  example.experts = kExperts[random() % 6];
  const std::size_t layouts = 1 + random() % 3;
  std::uint64_t multiple = 1;
  for (std::size_t i = 0; i < layouts; ++i) {
    example.layouts.push_back(random_layout(random, example));
    multiple = std::lcm(multiple, std::uint64_t{example.layouts.back().tensor_parallel});
    multiple = std::lcm(multiple, example.layouts.back().expert_cuts());
  }
  add_tensors(random, multiple, example);
  // Also sizes that no element size divides.
  example.block_size = Bytes(4096 + random() % 3 * (random() % 2000));
  return example;
}

TEST(WeightMapProperty, AgreesWithAByteByByteOracle) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Example example = random_example(random);
    const WeightMap map(example.manifest(), example.layouts, example.block_size);
    check_against_oracle(map, example);
    if (HasFailure()) return;
  }
}

// Stretches of three bytes and blocks of 4,096: the second block begins one byte into a stretch,
// the third two.
TEST(WeightMapProperty, NarrowColumns) {
  Example example;
  example.known.push_back({{"a.o_proj.weight", DType::U8, {3000, 6}}, StageOf::Every, 0, {}});
  const WeightMap map(example.manifest(), {{"two", 2}}, Bytes(4096));
  EXPECT_EQ(map.blocks(), 6U);
  check_against_oracle(map, example);
}

bool suits(const Example& example, const Layout& layout) {
  if (layout.pipeline_parallel > example.layers) return false;
  for (const Known& k : example.known) {
    const TensorCut cut = cut_of(k.tensor);
    if (cut == TensorCut::Replicated || *bytes_of(k.tensor) == 0) continue;
    const std::uint64_t cuts = k.expert ? layout.expert_cuts() : layout.tensor_parallel;
    if (k.tensor.shape[cut == TensorCut::Columns ? 1 : 0] % cuts != 0) return false;
  }
  return true;
}

bool would_separate(const WeightMap& map, const Example& example, const Layout& late) {
  const std::vector<ByteInfo> bytes = describe(example, example.manifest(), {late}).bytes;
  for (std::size_t s = 0; s < map.segments().size(); ++s) {
    const auto offsets = expand(map.model_runs(SegmentId(s)));
    for (const std::uint64_t i : offsets) {
      if (bytes[i].signature != bytes[offsets.front()].signature) return true;
    }
  }
  return false;
}

// A late layout is taken exactly if each segment stays on one set of shards, and changes no block.
TEST(WeightMapProperty, LateLayouts) {
  int taken = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Example example = random_example(random);
    WeightMap map(example.manifest(), example.layouts, example.block_size);
    for (std::uint32_t i = 0; i < 4; ++i) {
      Layout late = random_layout(random, example);
      if (i < 2) late = {"", 1U << i};
      late.name = "late" + std::to_string(i);
      if (!suits(example, late)) {
        EXPECT_THROW(static_cast<void>(map.separates(late)), Error);
        EXPECT_THROW(map.add_layout(late), Error);
        continue;
      }
      const bool separates = would_separate(map, example, late);
      EXPECT_EQ(map.separates(late), separates) << late.name;
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
      check_against_oracle(map, example);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(taken, 20);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace holdfast
