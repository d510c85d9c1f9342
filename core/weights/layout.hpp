// How a model is cut into shards for one model-parallel group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/weights/manifest.hpp"

namespace holdfast {

// How tensor parallelism treats one tensor.
enum class TensorCut {
  Replicated,  // every shard holds all of it (norms, biases of row-parallel layers, scalars)
  Rows,        // dimension 0 is divided (column-parallel layers, embeddings, output head)
  Columns,     // dimension 1 is divided (row-parallel layers: o_proj, down_proj)
};

// The grid of one replica's shards. The pipeline cuts the layers into stages; the workers of a
// stage see its dense tensors and its experts as two grids over the same workers:
//
//   workers of a stage = expert_parallel x expert_tensor_parallel = tensor_parallel x copies;
//   shard number       = stage x workers of a stage + worker w of the stage;
//   dense tensors      are cut by rank w mod tensor_parallel, and so copied if there are more
//                      workers than ranks;
//   experts            lie, in contiguous ranges of equal size, on expert rank
//                      w / expert_tensor_parallel, and are cut by w mod expert_tensor_parallel.
//
// So the tensor-parallel rank changes fastest, then the expert rank, then the stage. What servers
// and trainers do are three cases of it:
//
//   Megatron        {TP 8, EP 4}        expert_tensor_parallel is tensor_parallel unless said
//                                       otherwise: 32 workers a stage, four copies of the dense
//                                       tensors;
//   vLLM (TP x DP)  {TP 8, EP 32, expert TP 1}   experts whole, over the ranks of all copies;
//   SGLang          {TP 8, EP 4, expert TP 2}    experts within the workers of the dense tensors.
//
// Source: Liu et al., "MoE Parallel Folding" (arXiv 2504.14960) and Megatron Core's parallel_state
// (order tp-cp-ep-dp-pp); vLLM's "Expert Parallel Deployment" (EP size = TP size x DP size).
struct Layout {
  std::string name;
  std::uint32_t tensor_parallel = 1;                      // cuts of a dense tensor
  std::uint32_t pipeline_parallel = 1;                    // stages
  std::uint32_t expert_parallel = 1;                      // ranges of experts
  std::optional<std::uint32_t> expert_tensor_parallel{};  // cuts of an expert; tensor_parallel

  [[nodiscard]] std::uint64_t expert_cuts() const {
    return expert_tensor_parallel.value_or(tensor_parallel);
  }
  [[nodiscard]] std::uint64_t stage_workers() const { return expert_parallel * expert_cuts(); }
  [[nodiscard]] std::uint64_t shards() const { return pipeline_parallel * stage_workers(); }
};

// The cut of a tensor, from its name and rank, for the names of Hugging Face checkpoints of Llama,
// Mistral, Mixtral, Qwen2, Qwen2.5, Qwen3, Qwen3-MoE, DeepSeek-V3 and Kimi-K2 models:
//
//   column-parallel (output features divided):  q_proj k_proj v_proj gate_proj up_proj w1 w3, and
//                                               of latent attention q_b_proj kv_b_proj  -> Rows,
//                                               the bias too (dimension 0 is the output);
//   vocabulary-parallel:                        embed_tokens lm_head head               -> Rows;
//   row-parallel (input features divided):      o_proj down_proj w2 -> Columns; their bias is
//                                               added after the reduction -> Replicated;
//   norms, a router's gate, the compressions of latent attention (q_a_proj kv_a_proj_with_mqa),
//   the projection before a prediction layer (eh_proj)                    -> Replicated.
//
// The scales of blockwise quantised weights (weight_scale_inv) have the weight's rank and are cut
// like it. A name that no rule knows is replicated if it has fewer than two dimensions and is
// otherwise cut by rows. A dimension of one element (a scale that is broadcast) is never cut.
//
// Source: Shoeybi et al., "Megatron-LM" (arXiv 1909.08053), section 3; vLLM and SGLang do the same
// with ColumnParallelLinear, RowParallelLinear, ReplicatedLinear and VocabParallelEmbedding. Unlike
// vLLM we neither pad a vocabulary that does not divide nor copy key/value heads where there are
// more shards than heads: the former is refused, the latter is cut by rows like any other
// column-parallel layer.
[[nodiscard]] TensorCut cut_of(const Tensor& tensor);

}  // namespace holdfast
