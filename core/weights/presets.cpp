#include "core/weights/presets.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/nearest.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

// The numbers of a model's config.json from which the names and shapes of its tensors follow.
struct Architecture {
  const char* name;
  const char* source;
  std::uint64_t layers;        // num_hidden_layers
  std::uint64_t hidden;        // hidden_size
  std::uint64_t intermediate;  // intermediate_size
  std::uint64_t heads;         // num_attention_heads
  std::uint64_t kv_heads;      // num_key_value_heads
  std::uint64_t vocabulary;    // vocab_size
  bool attention_bias;         // of q, k and v (Qwen2)
};
// Head dimension hidden / heads, dtype bfloat16 and an output head of its own (tie_word_embeddings
// false) in all three. The tests hold the published parameter and byte counts.
constexpr auto kArchitectures = std::to_array<Architecture>({
    {"qwen2.5-7b",
     "config.json and model.safetensors.index.json of Qwen/Qwen2.5-7B on Hugging Face "
     "(7,615,616,512 parameters, 339 tensors, 15,231,233,024 bytes)",
     28, 3584, 18944, 28, 4, 152064, true},
    {"qwen2.5-32b",
     "config.json and model.safetensors.index.json of Qwen/Qwen2.5-32B on Hugging Face "
     "(32,763,876,352 parameters, 771 tensors, 65,527,752,704 bytes)",
     64, 5120, 27648, 40, 8, 152064, true},
    {"llama-3.1-70b",
     "config.json and model.safetensors.index.json of meta-llama/Llama-3.1-70B on Hugging Face "
     "(70,553,706,496 parameters, 723 tensors, 141,107,412,992 bytes)",
     80, 8192, 28672, 64, 8, 128256, false},
});

std::vector<Tensor> tensors_of(const Architecture& a) {
  std::vector<Tensor> tensors;
  const auto add = [&](std::string name, std::vector<std::uint64_t> shape) {
    tensors.push_back({std::move(name), DType::BF16, std::move(shape)});
  };
  const std::uint64_t key_value = a.hidden / a.heads * a.kv_heads;
  add("model.embed_tokens.weight", {a.vocabulary, a.hidden});
  add("lm_head.weight", {a.vocabulary, a.hidden});
  add("model.norm.weight", {a.hidden});
  for (std::uint64_t layer = 0; layer < a.layers; ++layer) {
    const auto name = [&](const char* rest) {
      return fmt::format("model.layers.{}.{}", layer, rest);
    };
    add(name("input_layernorm.weight"), {a.hidden});
    add(name("post_attention_layernorm.weight"), {a.hidden});
    add(name("self_attn.q_proj.weight"), {a.hidden, a.hidden});
    add(name("self_attn.k_proj.weight"), {key_value, a.hidden});
    add(name("self_attn.v_proj.weight"), {key_value, a.hidden});
    add(name("self_attn.o_proj.weight"), {a.hidden, a.hidden});
    if (a.attention_bias) {
      add(name("self_attn.q_proj.bias"), {a.hidden});
      add(name("self_attn.k_proj.bias"), {key_value});
      add(name("self_attn.v_proj.bias"), {key_value});
    }
    add(name("mlp.gate_proj.weight"), {a.intermediate, a.hidden});
    add(name("mlp.up_proj.weight"), {a.intermediate, a.hidden});
    add(name("mlp.down_proj.weight"), {a.hidden, a.intermediate});
  }
  return tensors;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> list;
    for (const Architecture& a : kArchitectures) list.push_back({a.name, a.source});
    return list;
  }();
  return all;
}

Manifest preset_manifest(std::string_view name) {
  std::vector<std::string> known;
  for (const Architecture& a : kArchitectures) {
    if (name == a.name) return Manifest(a.name, tensors_of(a));
    known.emplace_back(a.name);
  }
  throw Error(ErrorCode::UnknownName,
              fmt::format("no model preset {}{}", quote(name), suggestion(name, known)));
}

}  // namespace holdfast
