// How a model is cut into shards for one model-parallel group.
#pragma once

#include <cstdint>
#include <string>

#include "core/weights/manifest.hpp"

namespace holdfast {

// How tensor parallelism treats one tensor.
enum class TensorCut {
  Replicated,  // every shard holds all of it (norms, biases of row-parallel layers, scalars)
  Rows,        // dimension 0 is divided (column-parallel layers, embeddings, output head)
  Columns,     // dimension 1 is divided (row-parallel layers: o_proj, down_proj)
};

struct Layout {
  std::string name;
  std::uint32_t tensor_parallel = 1;  // number of shards
};

// The cut of a tensor, from its name and rank, for the names of Hugging Face checkpoints of dense
// Llama, Mistral, Qwen2, Qwen2.5 and Qwen3 models:
//
//   column-parallel (output features divided):  q_proj k_proj v_proj gate_proj up_proj -> Rows,
//                                               the bias too (dimension 0 is the output);
//   vocabulary-parallel:                        embed_tokens lm_head                   -> Rows;
//   row-parallel (input features divided):      o_proj down_proj -> Columns; their bias is
//                                               added after the reduction                ->
//                                               Replicated;
//   norms, a router's gate                                                             ->
//   Replicated.
//
// A name that no rule knows is replicated if it has fewer than two dimensions and is otherwise cut
// by rows. A dimension of one element (a scale that is broadcast) is never cut.
//
// Source: Shoeybi et al., "Megatron-LM" (arXiv 1909.08053), section 3; vLLM and SGLang do the same
// with ColumnParallelLinear, RowParallelLinear and VocabParallelEmbedding. Unlike vLLM we neither
// pad a vocabulary that does not divide nor copy key/value heads where there are more shards than
// heads: the former is refused, the latter is cut by rows like any other column-parallel layer.
[[nodiscard]] TensorCut cut_of(const Tensor& tensor);

}  // namespace holdfast
