// Which shards of a layout hold a tensor, and whether the layout suits the model at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/weights/layout.hpp"
#include "core/weights/model_structure.hpp"

namespace holdfast {

enum class LayoutKey { TensorParallel, PipelineParallel, ExpertParallel, ExpertTensorParallel };

// Why a layout cannot be used, and the number of it that must change.
struct LayoutFault {
  LayoutKey key;
  ErrorCode code;
  std::string message;
};

inline constexpr std::uint64_t kMostShards = std::uint64_t{1} << 14;

// What is wrong with the grid itself: a zero, more than kMostShards shards (LimitExceeded), dense
// tensors that do not fit the workers of a stage a whole number of times. O(1).
[[nodiscard]] std::optional<LayoutFault> fault_of(const Layout& layout);

// The same for this model: more stages than layers, ranges of experts for a dense model (they would
// have no effect), experts that do not divide, a tensor whose cut dimension does not divide.
// O(tensors).
[[nodiscard]] std::optional<LayoutFault> fault_of(const Layout& layout,
                                                  const ModelStructure& model);

// Where the slices of a tensor lie. Equal places mean equal sets of shards, slice by slice.
struct ShardPlace {
  enum class Stages { One, Ends, All };
  static constexpr std::uint32_t kEveryRank = ~0U;

  Stages stages = Stages::One;
  std::uint32_t stage = 0;          // if One
  std::uint32_t rank = kEveryRank;  // the expert rank, or a dense tensor's: it is on all of them
  std::uint32_t slices = 1;         // even cuts of the tensor's dimension; 1: whole on each shard
  friend constexpr auto operator<=>(const ShardPlace&, const ShardPlace&) = default;
};

class LayoutGrid {
 public:
  // Precondition: fault_of(layout, model) is empty.
  //
  // Stages take contiguous ranges of layers, as equal as possible; where they do not divide, the
  // stages before the last one take one layer more, from the last but one backwards, since the last
  // stage has the output head as well (vLLM's get_pp_indices does the same).
  LayoutGrid(const Layout& layout, const ModelStructure& model);

  [[nodiscard]] ShardPlace place_of(const TensorRole& tensor) const;
  // Ascending. O(shards that it returns).
  [[nodiscard]] std::vector<std::uint32_t> shards_of(const ShardPlace& place,
                                                     std::uint32_t slice) const;
  // The slice that a shard holds of a tensor of that place, one of whose slices it holds.
  [[nodiscard]] std::uint32_t slice_of(const ShardPlace& place, std::uint32_t shard) const;

  [[nodiscard]] std::uint32_t shards() const { return stages_ * workers_; }
  [[nodiscard]] std::uint32_t stages() const { return stages_; }
  // Shards of one stage and expert rank hold slices of the same tensors, and so equal bytes. There
  // are stages x expert_parallel such families, numbered by stage, then rank.
  [[nodiscard]] std::uint32_t families() const { return stages_ * ranks_; }
  [[nodiscard]] std::uint32_t family_of(std::uint32_t shard) const { return shard / expert_cuts_; }
  // The families that hold a tensor of that place, ascending.
  [[nodiscard]] std::vector<std::uint32_t> families_of(const ShardPlace& place) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> stages_of(const ShardPlace& place) const;

  std::uint32_t tensor_cuts_;
  std::uint32_t expert_cuts_;
  std::uint32_t ranks_;    // expert ranks of a stage
  std::uint32_t workers_;  // of a stage
  std::uint32_t stages_;
  std::uint32_t experts_of_rank_;
  std::vector<std::uint32_t> stage_of_layer_;
};

}  // namespace holdfast
