#include "core/weights/model_structure.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace holdfast {
namespace {

// What a name says by itself.
struct NameParts {
  std::optional<std::uint32_t> layer;
  std::optional<std::uint32_t> expert;
  std::string_view module;  // that owns the parameter, if it is in the decoder
};

// The number at the start of `text` that a '.' ends; takes both away.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (code != std::errc() || length == text.size() || *end != '.') return std::nullopt;
  text.remove_prefix(length + 1);
  return number;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Takes away what stands before the decoder's own names.
void take_prefix(std::string_view& text) {
  constexpr std::string_view kLanguageModel = "language_model.";
  if (const std::size_t at = text.find(kLanguageModel); at != std::string_view::npos) {
    text.remove_prefix(at + kLanguageModel.size());
  }
  take_word(text, "model.");
}

NameParts parts_of(std::string_view name) {
  NameParts parts;
  take_prefix(name);
  if (take_word(name, "layers.")) {
    parts.layer = take_number(name);
    constexpr std::string_view kExperts = ".experts.";
    if (const std::size_t at = name.find(kExperts); parts.layer && at != std::string_view::npos) {
      std::string_view rest = name.substr(at + kExperts.size());
      parts.expert = take_number(rest);
    }
  }
  const std::size_t last = name.rfind('.');
  if (last == std::string_view::npos) return parts;
  const std::string_view owner = name.substr(0, last);
  const std::size_t before = owner.rfind('.');
  // Outside the layers only a module of the decoder itself counts.
  if (before == std::string_view::npos) {
    parts.module = owner;
  } else if (parts.layer) {
    parts.module = owner.substr(before + 1);
  }
  return parts;
}

StageOf stage_outside_layers(std::string_view module, bool tied) {
  if (module == "embed_tokens") return tied ? StageOf::FirstAndLast : StageOf::First;
  if (module == "lm_head" || module == "norm") return StageOf::Last;
  return StageOf::Every;
}

// The numbers in use, each once, so that a position among them has no gaps.
void make_ranks(std::vector<std::uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

std::uint32_t rank_of(const std::vector<std::uint32_t>& numbers, std::uint32_t number) {
  const auto at = std::lower_bound(numbers.begin(), numbers.end(), number);
  return static_cast<std::uint32_t>(at - numbers.begin());
}

}  // namespace

ModelStructure::ModelStructure(const Manifest& manifest) {
  const auto tensors = manifest.tensors();
  std::vector<NameParts> parts;
  parts.reserve(tensors.size());
  std::vector<std::uint32_t> layers;
  std::vector<std::uint32_t> predicting;
  std::vector<std::uint32_t> experts;
  bool tied = true;
  for (const Tensor& tensor : tensors) {
    const NameParts& names = parts.emplace_back(parts_of(tensor.name));
    if (names.layer) layers.push_back(*names.layer);
    if (names.layer && names.module == "eh_proj") predicting.push_back(*names.layer);
    if (names.expert) experts.push_back(*names.expert);
    if (!names.layer && names.module == "lm_head") tied = false;
  }
  make_ranks(predicting);
  const auto predicts = [&](std::uint32_t layer) {
    return std::binary_search(predicting.begin(), predicting.end(), layer);
  };
  layers.erase(std::remove_if(layers.begin(), layers.end(), predicts), layers.end());
  make_ranks(layers);
  make_ranks(experts);
  layers_ = static_cast<std::uint32_t>(layers.size());
  experts_ = static_cast<std::uint32_t>(experts.size());
  tensors_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorRole role;
    role.name = tensors[i].name;
    if (manifest.bytes(i).count() > 0) role.cut = cut_of(tensors[i]);
    if (role.cut != TensorCut::Replicated) {
      role.size = tensors[i].shape[role.cut == TensorCut::Columns ? 1 : 0];
    }
    if (!parts[i].layer) {
      role.stage = stage_outside_layers(parts[i].module, tied);
    } else if (predicts(*parts[i].layer)) {
      role.stage = StageOf::Last;
    } else {
      role.stage = StageOf::Layer;
      role.layer = rank_of(layers, *parts[i].layer);
    }
    if (parts[i].expert) role.expert = rank_of(experts, *parts[i].expert);
    tensors_.push_back(std::move(role));
  }
}

}  // namespace holdfast
