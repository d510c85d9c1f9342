// What a layout must know of a model's tensors, from their names: the layer and the expert that
// each belongs to, and along which dimension tensor parallelism cuts it.
//
// Names are read as in Hugging Face checkpoints. The decoder stands at the top, under "model." or
// under a "language_model."; in it
//
//   layers.N. ...           belongs to layer N; if it says experts.E. as well, to expert E of it
//                           (shared_experts are no experts in this sense: every worker needs them);
//   embed_tokens            is needed by the first stage, and by the last too where no lm_head is
//                           stored, because then both are one tensor (tie_word_embeddings);
//   norm, lm_head           by the last stage;
//   a layer with eh_proj    predicts a further token (DeepSeek-V3's layer 61): it goes with the
//                           head and is not counted among the layers.
//
// Everything else (a vision tower) is needed by every stage. Experts that are stored as one tensor
// of three dimensions are not recognised.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/weights/layout.hpp"
#include "core/weights/manifest.hpp"

namespace holdfast {

enum class StageOf { Layer, First, Last, FirstAndLast, Every };

struct TensorRole {
  std::string name;
  TensorCut cut = TensorCut::Replicated;  // Replicated if the tensor has no bytes
  std::uint64_t size = 1;                 // elements of the dimension that is cut
  StageOf stage = StageOf::Every;
  std::uint32_t layer = 0;                // if Layer: its position among the model's layers
  std::optional<std::uint32_t> expert{};  // its position among the model's experts
};

class ModelStructure {
 public:
  // O(total length of the names + tensors x log).
  explicit ModelStructure(const Manifest& manifest);

  [[nodiscard]] std::span<const TensorRole> tensors() const { return tensors_; }
  [[nodiscard]] std::uint32_t layers() const { return layers_; }
  [[nodiscard]] std::uint32_t experts() const { return experts_; }  // of a layer; 0: dense

 private:
  std::vector<TensorRole> tensors_;  // by tensor of the manifest
  std::uint32_t layers_ = 0;
  std::uint32_t experts_ = 0;
};

}  // namespace holdfast
