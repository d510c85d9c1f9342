#include "core/weights/presets.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/nearest.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

// The experts of the layers from `first_layer` on; those before have one dense network.
struct Experts {
  std::uint64_t routed = 0;        // num_experts, n_routed_experts; 0: a dense model
  std::uint64_t shared = 0;        // n_shared_experts
  std::uint64_t intermediate = 0;  // moe_intermediate_size
  std::uint64_t first_layer = 0;   // first_k_dense_replace
};

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries and keys with values are
// compressed to these ranks.
struct Latent {
  std::uint64_t query_rank = 0;      // q_lora_rank; 0: grouped-query attention instead
  std::uint64_t key_value_rank = 0;  // kv_lora_rank
  std::uint64_t plain_head = 0;      // qk_nope_head_dim
  std::uint64_t rotary_head = 0;     // qk_rope_head_dim
  std::uint64_t value_head = 0;      // v_head_dim
};

// The numbers of a model's config.json from which the names and shapes of its tensors follow.
struct Architecture {
  const char* name;
  const char* source;
  std::uint64_t layers;         // num_hidden_layers
  std::uint64_t hidden;         // hidden_size
  std::uint64_t intermediate;   // intermediate_size
  std::uint64_t heads;          // num_attention_heads
  std::uint64_t kv_heads;       // num_key_value_heads
  std::uint64_t head;           // head_dim
  std::uint64_t vocabulary;     // vocab_size
  bool attention_bias = false;  // of q, k and v (Qwen2)
  bool head_norms = false;      // of q and k (Qwen3)
  Experts experts{};
  Latent latent{};
  std::uint64_t prediction_layers = 0;  // num_nextn_predict_layers, stored after the others
  // Linear layers in float8 with a float32 scale for each block of 128 x 128
  // (quantization_config: quant_method fp8, weight_block_size [128, 128]).
  bool float8 = false;
  bool tied = false;  // tie_word_embeddings: no output head of its own
};
// All store in bfloat16 what is not said to be otherwise. The tests hold the published parameter
// and byte counts.
constexpr auto kArchitectures = std::to_array<Architecture>({
    {.name = "qwen2.5-0.5b",
     .source = "config.json and model.safetensors of Qwen/Qwen2.5-0.5B on Hugging Face "
               "(494,032,768 parameters, 290 tensors, 988,065,536 bytes)",
     .layers = 24,
     .hidden = 896,
     .intermediate = 4864,
     .heads = 14,
     .kv_heads = 2,
     .head = 64,
     .vocabulary = 151936,
     .attention_bias = true,
     .tied = true},
    {.name = "qwen2.5-7b",
     .source = "config.json and model.safetensors.index.json of Qwen/Qwen2.5-7B on Hugging Face "
               "(7,615,616,512 parameters, 339 tensors, 15,231,233,024 bytes)",
     .layers = 28,
     .hidden = 3584,
     .intermediate = 18944,
     .heads = 28,
     .kv_heads = 4,
     .head = 128,
     .vocabulary = 152064,
     .attention_bias = true},
    {.name = "qwen2.5-32b",
     .source = "config.json and model.safetensors.index.json of Qwen/Qwen2.5-32B on Hugging Face "
               "(32,763,876,352 parameters, 771 tensors, 65,527,752,704 bytes)",
     .layers = 64,
     .hidden = 5120,
     .intermediate = 27648,
     .heads = 40,
     .kv_heads = 8,
     .head = 128,
     .vocabulary = 152064,
     .attention_bias = true},
    {.name = "llama-3.1-70b",
     .source =
         "config.json and model.safetensors.index.json of meta-llama/Llama-3.1-70B on Hugging Face "
         "(70,553,706,496 parameters, 723 tensors, 141,107,412,992 bytes)",
     .layers = 80,
     .hidden = 8192,
     .intermediate = 28672,
     .heads = 64,
     .kv_heads = 8,
     .head = 128,
     .vocabulary = 128256},
    {.name = "llama-3.1-405b",
     .source = "config.json and parameter count of meta-llama/Llama-3.1-405B on Hugging Face "
               "(405,853,388,800 parameters, 811,706,777,600 bytes)",
     .layers = 126,
     .hidden = 16384,
     .intermediate = 53248,
     .heads = 128,
     .kv_heads = 8,
     .head = 128,
     .vocabulary = 128256},
    {.name = "qwen3-30b-a3b",
     .source = "config.json and model.safetensors.index.json of Qwen/Qwen3-30B-A3B on Hugging Face "
               "(30,532,122,624 parameters, 61,064,245,248 bytes)",
     .layers = 48,
     .hidden = 2048,
     .intermediate = 6144,
     .heads = 32,
     .kv_heads = 4,
     .head = 128,
     .vocabulary = 151936,
     .head_norms = true,
     .experts = {.routed = 128, .intermediate = 768}},
    {.name = "deepseek-v3",
     .source = "config.json and the safetensors headers of deepseek-ai/DeepSeek-V3 on Hugging Face "
               "(671B and the 14B of a prediction layer: 680,571,043,840 float8, 3,918,786,560 "
               "bfloat16 and 41,555,600 float32 elements, scales included; 91,991 tensors, "
               "688,574,839,360 bytes)",
     .layers = 61,
     .hidden = 7168,
     .intermediate = 18432,
     .heads = 128,
     .kv_heads = 128,
     .head = 0,
     .vocabulary = 129280,
     .experts = {.routed = 256, .shared = 1, .intermediate = 2048, .first_layer = 3},
     .latent = {.query_rank = 1536,
                .key_value_rank = 512,
                .plain_head = 128,
                .rotary_head = 64,
                .value_head = 128},
     .prediction_layers = 1,
     .float8 = true},
    {.name = "kimi-k2",
     .source =
         "config.json and the safetensors headers of moonshotai/Kimi-K2-Instruct on Hugging Face "
         "(1,026,408,232,448 parameters without the scales; 139,644 tensors and 1,029,173,256,720 "
         "bytes, of which 61 tensors with 6,832 bytes are buffers of the rotary embedding, which "
         "are no weights and are left out here)",
     .layers = 61,
     .hidden = 7168,
     .intermediate = 18432,
     .heads = 64,
     .kv_heads = 64,
     .head = 0,
     .vocabulary = 163840,
     .experts = {.routed = 384, .shared = 1, .intermediate = 2048, .first_layer = 1},
     .latent = {.query_rank = 1536,
                .key_value_rank = 512,
                .plain_head = 128,
                .rotary_head = 64,
                .value_head = 128},
     .float8 = true},
});

class TensorList {
 public:
  explicit TensorList(const Architecture& a) : a_(a) {}

  std::vector<Tensor> make() && {
    add("model.embed_tokens.weight", {a_.vocabulary, a_.hidden});
    if (!a_.tied) add("lm_head.weight", {a_.vocabulary, a_.hidden});
    add("model.norm.weight", {a_.hidden});
    for (std::uint64_t layer = 0; layer < a_.layers + a_.prediction_layers; ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      add(prefix + "input_layernorm.weight", {a_.hidden});
      add(prefix + "post_attention_layernorm.weight", {a_.hidden});
      if (a_.latent.query_rank > 0) {
        latent_attention(prefix + "self_attn.");
      } else {
        grouped_attention(prefix + "self_attn.");
      }
      if (a_.experts.routed > 0 && layer >= a_.experts.first_layer) {
        experts(prefix + "mlp.");
      } else {
        network(prefix + "mlp.", a_.intermediate);
      }
      if (layer >= a_.layers) prediction(prefix);
    }
    return std::move(tensors_);
  }

 private:
  void add(std::string name, std::vector<std::uint64_t> shape, DType dtype = DType::BF16) {
    tensors_.push_back({std::move(name), dtype, std::move(shape)});
  }

  void linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
    add(name + ".weight", {out, in}, a_.float8 ? DType::F8E4M3 : DType::BF16);
    if (!a_.float8) return;
    constexpr std::uint64_t kBlock = 128;
    add(name + ".weight_scale_inv", {(out + kBlock - 1) / kBlock, (in + kBlock - 1) / kBlock},
        DType::F32);
  }

  void grouped_attention(const std::string& prefix) {
    const std::uint64_t query = a_.heads * a_.head;
    const std::uint64_t key_value = a_.kv_heads * a_.head;
    linear(prefix + "q_proj", query, a_.hidden);
    linear(prefix + "k_proj", key_value, a_.hidden);
    linear(prefix + "v_proj", key_value, a_.hidden);
    linear(prefix + "o_proj", a_.hidden, query);
    if (a_.attention_bias) {
      add(prefix + "q_proj.bias", {query});
      add(prefix + "k_proj.bias", {key_value});
      add(prefix + "v_proj.bias", {key_value});
    }
    if (a_.head_norms) {
      add(prefix + "q_norm.weight", {a_.head});
      add(prefix + "k_norm.weight", {a_.head});
    }
  }

  void latent_attention(const std::string& prefix) {
    const Latent& l = a_.latent;
    linear(prefix + "q_a_proj", l.query_rank, a_.hidden);
    add(prefix + "q_a_layernorm.weight", {l.query_rank});
    linear(prefix + "q_b_proj", a_.heads * (l.plain_head + l.rotary_head), l.query_rank);
    linear(prefix + "kv_a_proj_with_mqa", l.key_value_rank + l.rotary_head, a_.hidden);
    add(prefix + "kv_a_layernorm.weight", {l.key_value_rank});
    linear(prefix + "kv_b_proj", a_.heads * (l.plain_head + l.value_head), l.key_value_rank);
    linear(prefix + "o_proj", a_.hidden, a_.heads * l.value_head);
  }

  void network(const std::string& prefix, std::uint64_t intermediate) {
    linear(prefix + "gate_proj", intermediate, a_.hidden);
    linear(prefix + "up_proj", intermediate, a_.hidden);
    linear(prefix + "down_proj", a_.hidden, intermediate);
  }

  void experts(const std::string& prefix) {
    const Experts& e = a_.experts;
    add(prefix + "gate.weight", {e.routed, a_.hidden});
    // Routing without an auxiliary loss (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
    if (a_.latent.query_rank > 0) {
      add(prefix + "gate.e_score_correction_bias", {e.routed}, DType::F32);
    }
    for (std::uint64_t expert = 0; expert < e.routed; ++expert) {
      network(fmt::format("{}experts.{}.", prefix, expert), e.intermediate);
    }
    if (e.shared > 0) network(prefix + "shared_experts.", e.intermediate * e.shared);
  }

  void prediction(const std::string& prefix) {
    add(prefix + "embed_tokens.weight", {a_.vocabulary, a_.hidden});
    add(prefix + "enorm.weight", {a_.hidden});
    add(prefix + "hnorm.weight", {a_.hidden});
    add(prefix + "eh_proj.weight", {a_.hidden, 2 * a_.hidden});
    add(prefix + "shared_head.norm.weight", {a_.hidden});
    add(prefix + "shared_head.head.weight", {a_.vocabulary, a_.hidden});
  }

  const Architecture& a_;
  std::vector<Tensor> tensors_;
};

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
    if (name == a.name) return Manifest(a.name, TensorList(a).make());
    known.emplace_back(a.name);
  }
  throw Error(ErrorCode::UnknownName,
              fmt::format("no model preset {}{}", quote(name), suggestion(name, known)));
}

}  // namespace holdfast
