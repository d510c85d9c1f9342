#include "core/weights/presets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/error.hpp"
#include "core/weights/layout.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Published {
  const char* name;
  std::uint64_t parameters;  // the model page's count, without the scales of quantised weights
  std::uint64_t bytes;       // total_size of the checkpoint's index, or all safetensors headers
  std::size_t tensors;       // entries of its weight_map
};

// As published on the models' pages on Hugging Face. The tensors of Llama-3.1-405B and
// Qwen3-30B-A3B are counted from their configurations.
constexpr Published kPublished[] = {
    {"qwen2.5-0.5b", 494'032'768, 988'065'536, 290},
    {"qwen2.5-7b", 7'615'616'512, 15'231'233'024, 339},
    {"qwen2.5-32b", 32'763'876'352, 65'527'752'704, 771},
    {"llama-3.1-70b", 70'553'706'496, 141'107'412'992, 723},
    {"llama-3.1-405b", 405'853'388'800, 811'706'777'600, 1'137},
    {"qwen3-30b-a3b", 30'532'122'624, 61'064'245'248, 18'867},
    {"deepseek-v3", 684'489'845'504, 688'574'839'360, 91'991},
    // Without the 61 buffers of the rotary embedding.
    {"kimi-k2", 1'026'408'232'448, 1'029'173'256'720 - 6'832, 139'644 - 61},
};

std::uint64_t elements(const Tensor& tensor) {
  return *bytes_of(tensor) / bytes_of(tensor.dtype);
}

TEST(Presets, HaveThePublishedSizes) {
  ASSERT_EQ(presets().size(), std::size(kPublished));
  for (const Published& published : kPublished) {
    SCOPED_TRACE(published.name);
    const Manifest manifest = preset_manifest(published.name);
    EXPECT_EQ(manifest.model(), published.name);
    EXPECT_EQ(manifest.total(), Bytes(published.bytes));
    std::uint64_t parameters = 0;
    for (const Tensor& t : manifest.tensors()) {
      if (!t.name.ends_with("_scale_inv")) parameters += elements(t);
    }
    EXPECT_EQ(parameters, published.parameters);
    EXPECT_EQ(manifest.tensors().size(), published.tensors);
  }
}

// The page of DeepSeek-V3 counts elements by type, scales among the float32 ones.
TEST(Presets, DeepSeekByType) {
  std::map<std::string, std::uint64_t> by_type;
  const Manifest manifest = preset_manifest("deepseek-v3");
  for (const Tensor& t : manifest.tensors()) {
    by_type[to_string(t.dtype)] += elements(t);
  }
  EXPECT_EQ(by_type,
            (std::map<std::string, std::uint64_t>{
                {"F8_E4M3", 680'571'043'840}, {"BF16", 3'918'786'560}, {"F32", 41'555'600}}));
}

const Tensor& tensor(const Manifest& manifest, std::string_view name) {
  const auto tensors = manifest.tensors();
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  if (found == tensors.end()) throw std::out_of_range(std::string(name));
  return *found;
}

TEST(Presets, HaveTheTrueShapes) {
  const Manifest llama = preset_manifest("llama-3.1-70b");
  EXPECT_THAT(tensor(llama, "model.embed_tokens.weight").shape, ElementsAre(128256, 8192));
  EXPECT_THAT(tensor(llama, "lm_head.weight").shape, ElementsAre(128256, 8192));
  EXPECT_THAT(tensor(llama, "model.layers.79.self_attn.k_proj.weight").shape,
              ElementsAre(1024, 8192));
  EXPECT_THAT(tensor(llama, "model.layers.0.mlp.down_proj.weight").shape, ElementsAre(8192, 28672));
  EXPECT_THROW(tensor(llama, "model.layers.0.self_attn.q_proj.bias"), std::out_of_range);
  EXPECT_THROW(tensor(llama, "model.layers.80.mlp.down_proj.weight"), std::out_of_range);
  const Manifest deepseek = preset_manifest("deepseek-v3");
  EXPECT_THAT(tensor(deepseek, "model.layers.60.mlp.experts.255.down_proj.weight").shape,
              ElementsAre(7168, 2048));
  EXPECT_THAT(tensor(deepseek, "model.layers.60.mlp.experts.255.down_proj.weight_scale_inv").shape,
              ElementsAre(56, 16));
  EXPECT_THAT(tensor(deepseek, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight").shape,
              ElementsAre(576, 7168));
  EXPECT_THAT(tensor(deepseek, "model.layers.0.self_attn.q_b_proj.weight").shape,
              ElementsAre(24576, 1536));
  EXPECT_THAT(tensor(deepseek, "model.layers.61.eh_proj.weight").shape, ElementsAre(7168, 14336));
  EXPECT_THROW(tensor(deepseek, "model.layers.2.mlp.gate.weight"), std::out_of_range);
  const Manifest qwen = preset_manifest("qwen2.5-7b");
  EXPECT_THAT(tensor(qwen, "model.layers.27.self_attn.k_proj.bias").shape, ElementsAre(512));
  EXPECT_THAT(tensor(qwen, "model.layers.0.mlp.gate_proj.weight").shape, ElementsAre(18944, 3584));
}

TEST(Presets, CanBeCutAsUsual) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_THAT(preset.source, HasSubstr("config.json"));
    EXPECT_NO_THROW(WeightMap(preset_manifest(preset.name),
                              {{"a", 1}, {"b", 2}, {"c", 4}, {"d", 8, 2}}, Bytes(64'000'000)));
  }
}

// Bytes of all shards of a layout, and of those that the grid keeps more than once.
void expect_partition(const std::string& name, const Layout& layout) {
  SCOPED_TRACE(name + ", " + layout.name);
  const Manifest manifest = preset_manifest(name);
  const ModelStructure model(manifest);
  ASSERT_FALSE(fault_of(layout, model).has_value()) << fault_of(layout, model)->message;
  const LayoutGrid grid(layout, model);
  const WeightMap map(manifest, {layout}, Bytes(64'000'000));
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < model.tensors().size(); ++i) {
    const ShardPlace place = grid.place_of(model.tensors()[i]);
    std::uint64_t copies = 0;
    for (std::uint32_t k = 0; k < place.slices; ++k) copies += grid.shards_of(place, k).size();
    expected += manifest.bytes(i).count() / place.slices * copies;
    if (model.tensors()[i].expert) {  // an expert lies on one rank, and is cut there or is whole
      ASSERT_EQ(copies, place.slices == 1 ? layout.expert_cuts() : place.slices);
    }
  }
  std::uint64_t total = 0;
  std::uint64_t largest = 0;
  for (std::uint32_t s = 0; s < layout.shards(); ++s) {
    total += map.shard_bytes(0, s).count();
    largest = std::max(largest, map.shard_bytes(0, s).count());
  }
  EXPECT_EQ(total, expected);
  Bytes segments;
  for (const Segment& segment : map.segments()) {
    EXPECT_FALSE(segment.shards[0].empty());
    segments += segment.bytes;
  }
  EXPECT_EQ(segments, manifest.total());
  EXPECT_LT(largest, 2 * total / layout.shards()) << "a shard is far larger than the others";
}

TEST(Presets, ExpertsAndStagesShareTheModel) {
  expect_partition("llama-3.1-405b", {"two hosts", 8, 2});
  expect_partition("llama-3.1-405b", {"uneven stages", 8, 16});
  expect_partition("qwen3-30b-a3b", {"one host", 4, 1, 8, 1});
  expect_partition("qwen3-30b-a3b", {"megatron", 2, 2, 4});
  expect_partition("deepseek-v3", {"one host", 8, 1, 8, 1});
  expect_partition("deepseek-v3", {"wide", 8, 1, 32, 1});
  expect_partition("deepseek-v3", {"within", 8, 2, 4, 2});
  expect_partition("deepseek-v3", {"megatron", 8, 2, 4});
  expect_partition("kimi-k2", {"wide", 8, 4, 32, 1});
}

TEST(Presets, UnknownNameGetsASuggestion) {
  try {
    static_cast<void>(preset_manifest("llama-3.1-7b"));
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::UnknownName);
    EXPECT_THAT(error.message(), HasSubstr("did you mean 'llama-3.1-70b'"));
  }
}

}  // namespace
}  // namespace holdfast
