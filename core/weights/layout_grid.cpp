#include "core/weights/layout_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/quote.hpp"

namespace holdfast {
namespace {

LayoutFault mismatch(LayoutKey key, std::string message) {
  return {key, ErrorCode::LayoutMismatch, std::move(message)};
}

// The largest divisor of `number` that is not above `most`.
std::uint64_t divisor_below(std::uint64_t number, std::uint64_t most) {
  std::uint64_t divisor = std::min(number, most);
  while (number % divisor != 0) --divisor;
  return divisor;
}

std::optional<LayoutFault> expert_fault(const Layout& layout, const ModelStructure& model) {
  const std::string name = quote(layout.name);
  if (model.experts() == 0) {
    if (layout.expert_parallel > 1) {
      return mismatch(LayoutKey::ExpertParallel,
                      fmt::format("layout {} spreads experts over {} ranks, but the model has none "
                                  "(or stores them as one tensor); leave 'expert_parallel' away",
                                  name, layout.expert_parallel));
    }
    if (layout.expert_cuts() != layout.tensor_parallel) {
      return mismatch(LayoutKey::ExpertTensorParallel,
                      fmt::format("layout {} cuts experts, but the model has none; leave "
                                  "'expert_tensor_parallel' away",
                                  name));
    }
    return std::nullopt;
  }
  if (model.experts() % layout.expert_parallel != 0) {
    return mismatch(
        LayoutKey::ExpertParallel,
        fmt::format("layout {} spreads the {} experts of a layer over {} ranks, which does not "
                    "divide evenly; write a divisor, like {}",
                    name, model.experts(), layout.expert_parallel,
                    divisor_below(model.experts(), layout.expert_parallel)));
  }
  return std::nullopt;
}

}  // namespace

std::optional<LayoutFault> fault_of(const Layout& layout) {
  const std::string name = quote(layout.name);
  const auto none = [&](LayoutKey key) {
    return mismatch(key, fmt::format("layout {} has no shards; write 1 or more", name));
  };
  if (layout.tensor_parallel == 0) return none(LayoutKey::TensorParallel);
  if (layout.pipeline_parallel == 0) return none(LayoutKey::PipelineParallel);
  if (layout.expert_parallel == 0) return none(LayoutKey::ExpertParallel);
  if (layout.expert_cuts() == 0) return none(LayoutKey::ExpertTensorParallel);
  // Each product is checked before the next factor, so that none overflows.
  if (layout.stage_workers() > kMostShards || layout.shards() > kMostShards) {
    const LayoutKey key = layout.stage_workers() <= kMostShards ? LayoutKey::PipelineParallel
                          : layout.expert_parallel > 1          ? LayoutKey::ExpertParallel
                                                                : LayoutKey::TensorParallel;
    return LayoutFault{
        key, ErrorCode::LimitExceeded,
        fmt::format("more than {} shards in layout {}; write fewer", kMostShards, name)};
  }
  if (layout.stage_workers() % layout.tensor_parallel != 0) {
    return mismatch(
        LayoutKey::ExpertTensorParallel,
        fmt::format("layout {}: {} ranks of experts with {} cuts each are {} workers, which dense "
                    "tensors of {} cuts do not fill evenly; make expert_parallel x "
                    "expert_tensor_parallel a multiple of tensor_parallel",
                    name, layout.expert_parallel, layout.expert_cuts(), layout.stage_workers(),
                    layout.tensor_parallel));
  }
  return std::nullopt;
}

std::optional<LayoutFault> fault_of(const Layout& layout, const ModelStructure& model) {
  if (auto fault = fault_of(layout)) return fault;
  if (layout.pipeline_parallel > 1 && layout.pipeline_parallel > model.layers()) {
    return mismatch(LayoutKey::PipelineParallel,
                    fmt::format("layout {} has {} stages, but the model has {} layers; write at "
                                "most {}",
                                quote(layout.name), layout.pipeline_parallel, model.layers(),
                                std::max(model.layers(), 1U)));
  }
  if (auto fault = expert_fault(layout, model)) return fault;
  for (const TensorRole& tensor : model.tensors()) {
    if (tensor.cut == TensorCut::Replicated) continue;
    const bool expert = tensor.expert && layout.expert_tensor_parallel.has_value();
    const std::uint64_t cuts = expert ? layout.expert_cuts() : layout.tensor_parallel;
    if (tensor.size % cuts == 0) continue;
    return mismatch(
        expert ? LayoutKey::ExpertTensorParallel : LayoutKey::TensorParallel,
        fmt::format("layout {} cuts dimension {} of tensor {} into {} shards, but its {} elements "
                    "do not divide evenly; write a divisor of {}",
                    quote(layout.name), tensor.cut == TensorCut::Columns ? 1 : 0,
                    quote(tensor.name), cuts, tensor.size, tensor.size));
  }
  return std::nullopt;
}

LayoutGrid::LayoutGrid(const Layout& layout, const ModelStructure& model)
    : tensor_cuts_(layout.tensor_parallel),
      expert_cuts_(static_cast<std::uint32_t>(layout.expert_cuts())),
      ranks_(layout.expert_parallel),
      workers_(static_cast<std::uint32_t>(layout.stage_workers())),
      stages_(layout.pipeline_parallel),
      experts_of_rank_(std::max(model.experts() / layout.expert_parallel, 1U)),
      stage_of_layer_(model.layers()) {
  const std::uint32_t each = model.layers() / stages_;
  const std::uint32_t rest = model.layers() % stages_;
  std::uint32_t layer = 0;
  for (std::uint32_t stage = 0; stage < stages_; ++stage) {
    const bool one_more = stage + 1 < stages_ && stage + 1 + rest >= stages_;
    for (std::uint32_t k = 0; k < each + (one_more ? 1 : 0); ++k) {
      stage_of_layer_[layer++] = stage;
    }
  }
  assert(layer == model.layers());
}

ShardPlace LayoutGrid::place_of(const TensorRole& tensor) const {
  ShardPlace place;
  const bool cut = tensor.cut != TensorCut::Replicated;
  place.slices = !cut ? 1 : tensor.expert ? expert_cuts_ : tensor_cuts_;
  if (tensor.expert && (ranks_ > 1 || (cut && expert_cuts_ != tensor_cuts_))) {
    place.rank = *tensor.expert / experts_of_rank_;
  }
  switch (tensor.stage) {
    case StageOf::Layer:
      place.stage = stage_of_layer_[tensor.layer];
      break;
    case StageOf::First:
      break;
    case StageOf::Last:
      place.stage = stages_ - 1;
      break;
    case StageOf::FirstAndLast:
      place.stages = stages_ <= 2 ? ShardPlace::Stages::All : ShardPlace::Stages::Ends;
      break;
    case StageOf::Every:
      place.stages = ShardPlace::Stages::All;
      break;
  }
  if (stages_ == 1) place.stages = ShardPlace::Stages::One;
  return place;
}

std::vector<std::uint32_t> LayoutGrid::stages_of(const ShardPlace& place) const {
  if (place.stages == ShardPlace::Stages::One) return {place.stage};
  if (place.stages == ShardPlace::Stages::Ends) return {0, stages_ - 1};
  std::vector<std::uint32_t> all(stages_);
  for (std::uint32_t stage = 0; stage < stages_; ++stage) all[stage] = stage;
  return all;
}

std::vector<std::uint32_t> LayoutGrid::shards_of(const ShardPlace& place,
                                                 std::uint32_t slice) const {
  const bool dense = place.rank == ShardPlace::kEveryRank;
  const std::uint32_t begin = dense ? 0 : place.rank * expert_cuts_;
  const std::uint32_t end = dense ? workers_ : begin + expert_cuts_;
  std::vector<std::uint32_t> shards;
  for (const std::uint32_t stage : stages_of(place)) {
    // Both kinds of ranks change fastest, so a slice comes again every `slices` workers.
    for (std::uint32_t w = begin + slice; w < end; w += place.slices) {
      shards.push_back(stage * workers_ + w);
    }
  }
  return shards;
}

std::uint32_t LayoutGrid::slice_of(const ShardPlace& place, std::uint32_t shard) const {
  // A stage has a whole number of slices, and so has a rank of experts.
  return shard % place.slices;
}

std::vector<std::uint32_t> LayoutGrid::families_of(const ShardPlace& place) const {
  std::vector<std::uint32_t> families;
  for (const std::uint32_t stage : stages_of(place)) {
    const bool dense = place.rank == ShardPlace::kEveryRank;
    for (std::uint32_t rank = dense ? 0 : place.rank; rank < (dense ? ranks_ : place.rank + 1);
         ++rank) {
      families.push_back(stage * ranks_ + rank);
    }
  }
  return families;
}

}  // namespace holdfast
