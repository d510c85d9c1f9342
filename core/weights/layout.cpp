#include "core/weights/layout.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace holdfast {
namespace {

enum class Rule { ColumnParallel, RowParallel, Replicated };

struct NamedRule {
  std::string_view module;
  Rule rule;
};
constexpr auto kRules = std::to_array<NamedRule>({
    {"q_proj", Rule::ColumnParallel},
    {"k_proj", Rule::ColumnParallel},
    {"v_proj", Rule::ColumnParallel},
    {"q_b_proj", Rule::ColumnParallel},
    {"kv_b_proj", Rule::ColumnParallel},
    {"gate_proj", Rule::ColumnParallel},
    {"up_proj", Rule::ColumnParallel},
    {"w1", Rule::ColumnParallel},
    {"w3", Rule::ColumnParallel},
    {"embed_tokens", Rule::ColumnParallel},
    {"lm_head", Rule::ColumnParallel},
    {"head", Rule::ColumnParallel},
    {"o_proj", Rule::RowParallel},
    {"down_proj", Rule::RowParallel},
    {"w2", Rule::RowParallel},
    {"q_a_proj", Rule::Replicated},
    {"kv_a_proj_with_mqa", Rule::Replicated},
    {"eh_proj", Rule::Replicated},
    {"gate", Rule::Replicated},
});

// "model.layers.0.mlp.down_proj.weight" -> "down_proj": the module that owns the parameter.
std::string_view module_of(std::string_view name) {
  const std::size_t last = name.rfind('.');
  if (last == std::string_view::npos) return {};
  const std::string_view owner = name.substr(0, last);
  const std::size_t before = owner.rfind('.');
  return before == std::string_view::npos ? owner : owner.substr(before + 1);
}

bool is_norm(std::string_view module) {
  return module == "norm" || module.ends_with("_norm") || module.ends_with("layernorm");
}

TensorCut cut_by(Rule rule, std::size_t rank) {
  switch (rule) {
    case Rule::ColumnParallel:
      return rank >= 1 ? TensorCut::Rows : TensorCut::Replicated;
    case Rule::RowParallel:
      return rank >= 2 ? TensorCut::Columns : TensorCut::Replicated;
    case Rule::Replicated:
      break;
  }
  return TensorCut::Replicated;
}

}  // namespace

TensorCut cut_of(const Tensor& tensor) {
  const std::string_view module = module_of(tensor.name);
  const auto* known = std::find_if(kRules.begin(), kRules.end(),
                                   [&](const NamedRule& r) { return r.module == module; });
  TensorCut cut =
      tensor.shape.size() < 2 || is_norm(module) ? TensorCut::Replicated : TensorCut::Rows;
  if (known != kRules.end()) cut = cut_by(known->rule, tensor.shape.size());
  if (cut == TensorCut::Rows && tensor.shape[0] == 1) return TensorCut::Replicated;
  if (cut == TensorCut::Columns && tensor.shape[1] == 1) return TensorCut::Replicated;
  return cut;
}

}  // namespace holdfast
