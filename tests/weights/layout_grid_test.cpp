#include "core/weights/layout_grid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/weights/presets.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor weight(const std::string& name) {
  return {name + ".weight", DType::BF16, {64, 64}};
}

Manifest manifest(const std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  for (const std::string& name : names) tensors.push_back(weight(name));
  return {"m", std::move(tensors)};
}

// Ten layers of four experts each.
ModelStructure mixture() {
  std::vector<std::string> names{"model.embed_tokens", "lm_head", "model.norm"};
  for (int layer = 0; layer < 10; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    names.push_back(prefix + "self_attn.q_proj");
    for (int expert = 0; expert < 4; ++expert) {
      names.push_back(prefix + "mlp.experts." + std::to_string(expert) + ".up_proj");
    }
  }
  return ModelStructure(manifest(names));
}

const TensorRole& role(const ModelStructure& model, const std::string& module) {
  for (const TensorRole& tensor : model.tensors()) {
    if (tensor.name == module + ".weight") return tensor;
  }
  throw std::out_of_range(module);
}

TEST(ModelStructure, ReadsNames) {
  const ModelStructure model(
      manifest({"model.embed_tokens", "lm_head", "model.norm", "model.layers.2.self_attn.q_proj",
                "model.layers.4.mlp.experts.1.up_proj", "model.layers.4.mlp.experts.3.up_proj",
                "model.layers.4.mlp.shared_experts.up_proj", "model.layers.5.eh_proj",
                "model.layers.5.mlp.experts.3.up_proj", "model.layers.x.up_proj", "visual.norm"}));
  EXPECT_EQ(model.layers(), 2U);
  EXPECT_EQ(model.experts(), 2U);
  EXPECT_EQ(role(model, "model.embed_tokens").stage, StageOf::First);
  EXPECT_EQ(role(model, "lm_head").stage, StageOf::Last);
  EXPECT_EQ(role(model, "model.norm").stage, StageOf::Last);
  EXPECT_EQ(role(model, "model.layers.2.self_attn.q_proj").layer, 0U);
  EXPECT_EQ(role(model, "model.layers.2.self_attn.q_proj").expert, std::nullopt);
  EXPECT_EQ(role(model, "model.layers.4.mlp.experts.3.up_proj").layer, 1U);
  EXPECT_EQ(role(model, "model.layers.4.mlp.experts.3.up_proj").expert, 1U);
  EXPECT_EQ(role(model, "model.layers.4.mlp.shared_experts.up_proj").expert, std::nullopt);
  // The prediction layer goes with the head and is not counted.
  EXPECT_EQ(role(model, "model.layers.5.eh_proj").stage, StageOf::Last);
  EXPECT_EQ(role(model, "model.layers.5.mlp.experts.3.up_proj").stage, StageOf::Last);
  EXPECT_EQ(role(model, "model.layers.5.mlp.experts.3.up_proj").expert, 1U);
  EXPECT_EQ(role(model, "model.layers.x.up_proj").stage, StageOf::Every);
  EXPECT_EQ(role(model, "visual.norm").stage, StageOf::Every);
}

TEST(ModelStructure, TiedEmbeddingsAndOtherPrefixes) {
  const ModelStructure model(
      manifest({"model.language_model.embed_tokens", "language_model.model.layers.0.mlp.up_proj",
                "vision_tower.layers.7.up_proj"}));
  EXPECT_EQ(role(model, "model.language_model.embed_tokens").stage, StageOf::FirstAndLast);
  EXPECT_EQ(role(model, "language_model.model.layers.0.mlp.up_proj").stage, StageOf::Layer);
  EXPECT_EQ(role(model, "vision_tower.layers.7.up_proj").stage, StageOf::Every);
  EXPECT_EQ(model.layers(), 1U);
}

std::vector<std::uint32_t> layers_of_stages(const Layout& layout, const ModelStructure& model) {
  const LayoutGrid grid(layout, model);
  std::vector<std::uint32_t> layers(layout.pipeline_parallel);
  for (const TensorRole& tensor : model.tensors()) {
    if (tensor.name.ends_with("q_proj.weight")) ++layers[grid.place_of(tensor).stage];
  }
  return layers;
}

TEST(LayoutGrid, StagesTakeLayersInTurn) {
  const ModelStructure model = mixture();
  EXPECT_THAT(layers_of_stages({"", 1, 2}, model), ElementsAre(5, 5));
  EXPECT_THAT(layers_of_stages({"", 1, 3}, model), ElementsAre(3, 4, 3));
  EXPECT_THAT(layers_of_stages({"", 1, 4}, model), ElementsAre(2, 3, 3, 2));
  EXPECT_THAT(layers_of_stages({"", 1, 6}, model), ElementsAre(1, 2, 2, 2, 2, 1));
}

std::vector<std::uint32_t> shards(const LayoutGrid& grid, const ModelStructure& model,
                                  const std::string& module, std::uint32_t slice) {
  return grid.shards_of(grid.place_of(role(model, module)), slice);
}

// TP 2, EP 2, PP 2 with experts cut like the rest: four workers a stage, number 4 x stage + 2 x
// expert rank + tensor rank.
TEST(LayoutGrid, TensorThenExpertThenStage) {
  const ModelStructure model = mixture();
  const LayoutGrid grid({"", 2, 2, 2}, model);
  EXPECT_EQ(grid.shards(), 8U);
  EXPECT_THAT(shards(grid, model, "model.layers.0.self_attn.q_proj", 0), ElementsAre(0, 2));
  EXPECT_THAT(shards(grid, model, "model.layers.0.self_attn.q_proj", 1), ElementsAre(1, 3));
  EXPECT_THAT(shards(grid, model, "model.layers.9.mlp.experts.1.up_proj", 1), ElementsAre(5));
  EXPECT_THAT(shards(grid, model, "model.layers.9.mlp.experts.2.up_proj", 0), ElementsAre(6));
  EXPECT_THAT(shards(grid, model, "model.embed_tokens", 1), ElementsAre(1, 3));
  EXPECT_THAT(shards(grid, model, "lm_head", 1), ElementsAre(5, 7));
  EXPECT_THAT(shards(grid, model, "model.norm", 0), ElementsAre(4, 5, 6, 7));
}

// As vLLM and SGLang: experts whole, over the same workers that share the dense tensors.
TEST(LayoutGrid, ExpertsOverTheWorkersOfDenseTensors) {
  const ModelStructure model = mixture();
  const LayoutGrid one({"", 4, 1, 4, 1}, model);
  EXPECT_EQ(one.shards(), 4U);
  EXPECT_THAT(shards(one, model, "model.layers.0.mlp.experts.3.up_proj", 0), ElementsAre(3));
  EXPECT_THAT(shards(one, model, "model.layers.0.self_attn.q_proj", 3), ElementsAre(3));
  const LayoutGrid copies({"", 2, 1, 4, 1}, model);
  EXPECT_THAT(shards(copies, model, "model.layers.0.self_attn.q_proj", 1), ElementsAre(1, 3));
  EXPECT_THAT(shards(copies, model, "model.layers.0.mlp.experts.2.up_proj", 0), ElementsAre(2));
  const LayoutGrid within({"", 4, 1, 2, 2}, model);
  EXPECT_THAT(shards(within, model, "model.layers.0.mlp.experts.2.up_proj", 1), ElementsAre(3));
}

struct Wrong {
  Layout layout;
  LayoutKey key;
  ErrorCode code;
  const char* message;
};

TEST(FaultOf, NamesTheNumberThatMustChange) {
  const ModelStructure model = mixture();
  const Wrong wrong[] = {
      {{"l", 0}, LayoutKey::TensorParallel, ErrorCode::LayoutMismatch, "no shards"},
      {{"l", 1, 0}, LayoutKey::PipelineParallel, ErrorCode::LayoutMismatch, "no shards"},
      {{"l", 1, 11},
       LayoutKey::PipelineParallel,
       ErrorCode::LayoutMismatch,
       "11 stages, but the model has 10 layers; write at most 10"},
      {{"l", 1, 1, 3},
       LayoutKey::ExpertParallel,
       ErrorCode::LayoutMismatch,
       "4 experts of a layer over 3 ranks, which does not divide evenly; write a divisor, like 2"},
      {{"l", 4, 1, 2, 1},
       LayoutKey::ExpertTensorParallel,
       ErrorCode::LayoutMismatch,
       "do not fill evenly"},
      {{"l", 3}, LayoutKey::TensorParallel, ErrorCode::LayoutMismatch, "write a divisor of 64"},
      {{"l", 1, 1, 2, 3},
       LayoutKey::ExpertTensorParallel,
       ErrorCode::LayoutMismatch,
       "write a divisor of 64"},
      {{"l", 4096, 1, 8}, LayoutKey::ExpertParallel, ErrorCode::LimitExceeded, "write fewer"},
      {{"l", 4096, 4096}, LayoutKey::PipelineParallel, ErrorCode::LimitExceeded, "write fewer"},
  };
  for (const Wrong& w : wrong) {
    SCOPED_TRACE(w.message);
    const auto fault = fault_of(w.layout, model);
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->key, w.key);
    EXPECT_EQ(fault->code, w.code);
    EXPECT_THAT(fault->message, HasSubstr(w.message));
  }
  EXPECT_FALSE(fault_of({"l", 8, 10, 4}, model).has_value());
}

TEST(FaultOf, ExpertsOfADenseModel) {
  const ModelStructure dense(preset_manifest("llama-3.1-70b"));
  const auto fault = fault_of({"l", 8, 1, 2}, dense);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->key, LayoutKey::ExpertParallel);
  EXPECT_THAT(fault->message, HasSubstr("the model has none"));
  EXPECT_EQ(fault_of({"l", 8, 1, 1, 16}, dense)->key, LayoutKey::ExpertTensorParallel);
}

}  // namespace
}  // namespace holdfast
