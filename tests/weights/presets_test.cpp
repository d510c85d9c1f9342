#include "core/weights/presets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/weights/layout.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Published {
  const char* name;
  std::uint64_t parameters;  // the model page's count
  std::uint64_t bytes;       // total_size of the checkpoint's index
  std::size_t tensors;       // entries of its weight_map
};

// As published on the models' pages on Hugging Face.
constexpr Published kPublished[] = {
    {"qwen2.5-7b", 7'615'616'512, 15'231'233'024, 339},
    {"qwen2.5-32b", 32'763'876'352, 65'527'752'704, 771},
    {"llama-3.1-70b", 70'553'706'496, 141'107'412'992, 723},
};

TEST(Presets, HaveThePublishedSizes) {
  ASSERT_EQ(presets().size(), std::size(kPublished));
  for (const Published& published : kPublished) {
    SCOPED_TRACE(published.name);
    const Manifest manifest = preset_manifest(published.name);
    EXPECT_EQ(manifest.model(), published.name);
    EXPECT_EQ(manifest.total(), Bytes(published.bytes));
    EXPECT_EQ(manifest.total().count() / bytes_of(DType::BF16), published.parameters);
    EXPECT_EQ(manifest.tensors().size(), published.tensors);
  }
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
  const Manifest qwen = preset_manifest("qwen2.5-7b");
  EXPECT_THAT(tensor(qwen, "model.layers.27.self_attn.k_proj.bias").shape, ElementsAre(512));
  EXPECT_THAT(tensor(qwen, "model.layers.0.mlp.gate_proj.weight").shape, ElementsAre(18944, 3584));
}

TEST(Presets, CanBeCutAsUsual) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_THAT(preset.source, HasSubstr("config.json"));
    EXPECT_NO_THROW(WeightMap(preset_manifest(preset.name),
                              {{"a", 1}, {"b", 2}, {"c", 4}, {"d", 8}}, Bytes(64'000'000)));
  }
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
