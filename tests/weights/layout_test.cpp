#include "core/weights/layout.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TensorCut cut(const char* name, std::vector<std::uint64_t> shape) {
  return cut_of({name, DType::BF16, std::move(shape)});
}

TEST(CutOf, ColumnParallelLayersByRowsWithTheirBias) {
  for (const char* module : {"q_proj", "k_proj", "v_proj"}) {
    const std::string name = std::string("model.layers.3.self_attn.") + module;
    EXPECT_EQ(cut((name + ".weight").c_str(), {8, 16}), TensorCut::Rows) << module;
    EXPECT_EQ(cut((name + ".bias").c_str(), {8}), TensorCut::Rows) << module;
  }
  EXPECT_EQ(cut("model.layers.3.mlp.gate_proj.weight", {8, 16}), TensorCut::Rows);
  EXPECT_EQ(cut("model.layers.3.mlp.up_proj.weight", {8, 16}), TensorCut::Rows);
  EXPECT_EQ(cut("model.layers.3.mlp.up_proj.bias", {8}), TensorCut::Rows);
}

TEST(CutOf, RowParallelLayersByColumnsWithoutTheirBias) {
  EXPECT_EQ(cut("model.layers.3.self_attn.o_proj.weight", {8, 16}), TensorCut::Columns);
  EXPECT_EQ(cut("model.layers.3.mlp.down_proj.weight", {8, 16}), TensorCut::Columns);
  EXPECT_EQ(cut("model.layers.3.self_attn.o_proj.bias", {8}), TensorCut::Replicated);
  EXPECT_EQ(cut("model.layers.3.mlp.down_proj.bias", {8}), TensorCut::Replicated);
}

TEST(CutOf, VocabularyByRows) {
  EXPECT_EQ(cut("model.embed_tokens.weight", {100, 16}), TensorCut::Rows);
  EXPECT_EQ(cut("lm_head.weight", {100, 16}), TensorCut::Rows);
}

TEST(CutOf, NormsAndRoutersAreReplicated) {
  EXPECT_EQ(cut("model.norm.weight", {16}), TensorCut::Replicated);
  EXPECT_EQ(cut("model.layers.3.input_layernorm.weight", {16}), TensorCut::Replicated);
  EXPECT_EQ(cut("model.layers.3.self_attn.q_norm.weight", {16}), TensorCut::Replicated);
  EXPECT_EQ(cut("model.some_norm.weight", {16, 16}), TensorCut::Replicated);
  EXPECT_EQ(cut("model.layers.3.mlp.gate.weight", {8, 16}), TensorCut::Replicated);
}

// What compresses is copied, what expands is cut by heads, and scales follow their weights.
TEST(CutOf, LatentAttention) {
  const std::string attention = "model.layers.3.self_attn.";
  const auto shape = std::vector<std::uint64_t>{16, 8};
  for (const char* kind : {".weight", ".weight_scale_inv"}) {
    EXPECT_EQ(cut((attention + "q_a_proj" + kind).c_str(), shape), TensorCut::Replicated);
    EXPECT_EQ(cut((attention + "kv_a_proj_with_mqa" + kind).c_str(), shape), TensorCut::Replicated);
    EXPECT_EQ(cut((attention + "q_b_proj" + kind).c_str(), shape), TensorCut::Rows);
    EXPECT_EQ(cut((attention + "kv_b_proj" + kind).c_str(), shape), TensorCut::Rows);
    EXPECT_EQ(cut((attention + "o_proj" + kind).c_str(), shape), TensorCut::Columns);
  }
  EXPECT_EQ(cut((attention + "kv_a_layernorm.weight").c_str(), {16}), TensorCut::Replicated);
}

TEST(CutOf, Experts) {
  const std::string experts = "model.layers.3.mlp.experts.7.";
  EXPECT_EQ(cut((experts + "gate_proj.weight").c_str(), {16, 8}), TensorCut::Rows);
  EXPECT_EQ(cut((experts + "down_proj.weight_scale_inv").c_str(), {16, 8}), TensorCut::Columns);
  EXPECT_EQ(cut("model.layers.3.mlp.gate.e_score_correction_bias", {16}), TensorCut::Replicated);
  const std::string mixtral = "model.layers.3.block_sparse_moe.experts.7.";
  EXPECT_EQ(cut((mixtral + "w1.weight").c_str(), {16, 8}), TensorCut::Rows);
  EXPECT_EQ(cut((mixtral + "w2.weight").c_str(), {16, 8}), TensorCut::Columns);
  EXPECT_EQ(cut((mixtral + "w3.weight").c_str(), {16, 8}), TensorCut::Rows);
}

TEST(CutOf, UnknownNamesByRank) {
  EXPECT_EQ(cut("what", {}), TensorCut::Replicated);
  EXPECT_EQ(cut("what.is.this", {16}), TensorCut::Replicated);
  EXPECT_EQ(cut("what.is.this", {16, 4}), TensorCut::Rows);
  EXPECT_EQ(cut("what.is.this", {16, 4, 3, 3}), TensorCut::Rows);
  // The module decides, not a part of a longer word.
  EXPECT_EQ(cut("my_down_proj_copy.weight", {16, 4}), TensorCut::Rows);
  EXPECT_EQ(cut("down_proj", {16, 4}), TensorCut::Rows);
}

TEST(CutOf, BroadcastDimensionsAreNotCut) {
  EXPECT_EQ(cut("l.o_proj.weight_scale", {16, 1}), TensorCut::Replicated);
  EXPECT_EQ(cut("l.q_proj.weight_scale", {1}), TensorCut::Replicated);
  EXPECT_EQ(cut("l.q_proj.weight_scale", {16, 1}), TensorCut::Rows);
  EXPECT_EQ(cut("l.q_proj.input_scale", {}), TensorCut::Replicated);
}

}  // namespace
}  // namespace holdfast
