// The shape of the policy network. Does not use torch: every process reads it, but few build the
// network.
#pragma once

#include "actors/model/lora_config.hpp"
#include "core/describe.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper {

namespace actors {

/// Decoder-only transformers (RMSNorm, rotary positions, grouped-query attention, SwiGLU), named as
/// in config.json. They differ in the treatment of queries and keys:
enum class Architecture {
  Llama,  ///< nothing;
  Qwen2,  ///< a bias is added to queries, keys and values;
  Qwen3,  ///< each head of queries and keys is normalized.
};

/// Stretches the slow rotary angles, so that a model trained on `original_context` can read longer
/// texts: rope_type `llama3` in config.json (Llama 3.1 and newer).
struct RopeScaling {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  Tokens original_context{8192};
  bool operator==(const RopeScaling&) const = default;
};

void describe(auto& v, RopeScaling& c) {
  v.field(1,
          "factor",
          c.factor,
          {.doc = "Slow rotary angles are slowed down by this factor.", .min = 1.0, .max = 1e6});
  v.field(2,
          "low_freq_factor",
          c.low_freq_factor,
          {.doc = "An angle is slow if it turns at most this often within `original_context`.",
           .min = 1e-6,
           .max = 1e6});
  v.field(3,
          "high_freq_factor",
          c.high_freq_factor,
          {.doc = "An angle that turns at least this often is unchanged; must exceed "
                  "`low_freq_factor`. Angles in between are interpolated.",
           .min = 1e-6,
           .max = 1e6});
  v.field(4,
          "original_context",
          c.original_context,
          {.doc = "original_max_position_embeddings, in tokens.",
           .min = Tokens(1),
           .max = Tokens(1 << 20)});
}

/// Operands of matrix products. Sums, other operations, gradients and the trained weights are
/// float32 in both cases. Auto is only in a configuration file: reading it chooses one of the
/// others (orchestrator/pipeline/model_section.hpp).
enum class ComputeType { Float32, Bfloat16, Auto };

struct ModelConfig {
  std::int32_t hidden = 64;
  std::int32_t layers = 2;
  std::int32_t heads = 4;
  std::int32_t kv_heads = 2;
  std::int32_t ffn = 192;
  Tokens context{32};
  double rope_base = 10000;
  Architecture architecture = Architecture::Llama;
  std::optional<std::int32_t> head_dim{};
  double norm_epsilon = 1e-6;
  bool tie_embeddings = false;
  std::optional<std::int32_t> vocabulary{};
  std::string path;
  std::vector<std::int32_t> end_tokens{};
  std::optional<RopeScaling> rope_scaling{};
  std::vector<std::string> ignore{};
  ComputeType compute_dtype = ComputeType::Float32;
  std::optional<LoraConfig> lora{};
  bool operator==(const ModelConfig&) const = default;

  /// Requires: `head_dim` is set, or `heads` divides `hidden`.
  std::int32_t head_size() const { return head_dim.value_or(hidden / heads); }
};

// One field after the other. NOLINTNEXTLINE(readability-function-size)
void describe(auto& v, ModelConfig& c) {
  v.field(1, "hidden", c.hidden, {.doc = "Width of the residual stream.", .min = 8, .max = 32768});
  v.field(2, "layers", c.layers, {.doc = "Number of transformer blocks.", .min = 1, .max = 256});
  v.field(3, "heads", c.heads, {.doc = "Query heads.", .min = 1, .max = 256});
  v.field(4,
          "kv_heads",
          c.kv_heads,
          {.doc = "Key and value heads; must divide `heads`.", .min = 1, .max = 256});
  v.field(5, "ffn", c.ffn, {.doc = "Inner width of the SwiGLU layer.", .min = 8, .max = 131072});
  v.field(6,
          "context",
          c.context,
          {.doc = "Longest prompt plus response, in tokens. With `path`: at most, and by default, "
                  "the folder's max_position_embeddings.",
           .min = Tokens(4),
           .max = Tokens(1 << 20)});
  v.field(7, "rope_base", c.rope_base, {.doc = "Base of the rotary angles.", .min = 10.0});
  v.field(8, "architecture", c.architecture, {.doc = "Architecture, named as in config.json."});
  v.field(9,
          "head_dim",
          c.head_dim,
          {.doc = "Width of a head, an even number; default: hidden / heads."});
  v.field(10,
          "norm_epsilon",
          c.norm_epsilon,
          {.doc = "Added to the mean square of a norm.", .min = 1e-12, .max = 0.1});
  v.field(11,
          "tie_embeddings",
          c.tie_embeddings,
          {.doc = "Whether the output head shares the weights of the embedding."});
  v.field(12,
          "vocabulary",
          c.vocabulary,
          {.doc = "Rows of the embedding; default: number of tokens of the task's tokenizer."});
  v.field(13,
          "path",
          c.path,
          {.doc = "Folder of a Hugging Face model, a GGUF file (or a folder with one), or "
                  "`smollm2`: SmolLM2-135M-Instruct, which is downloaded once. The run starts from "
                  "its weights without pretraining, and all other keys of this section except "
                  "`context`, `ignore`, `compute_dtype` and `lora` are read from its config.json. "
                  "Empty: the base model is pretrained.",
           .example = "models/Qwen3-0.6B"});
  v.field(14,
          "end_tokens",
          c.end_tokens,
          {.doc = "End-of-response tokens. Empty: with `path`, the eos_token_id of its "
                  "generation_config.json or config.json; otherwise that of the task's tokenizer.",
           .example = "[151645, 151643]"});
  v.field(15,
          "rope_scaling",
          c.rope_scaling,
          {.doc = "The `llama3` scaling of rotary angles; null: none.",
           .example = "{factor: 8, original_context: 8192}"});
  v.field(
      16,
      "ignore",
      c.ignore,
      {.doc = "With `path`: unknown keys of its config.json that do not change what the network "
              "computes. The run prints a warning for each ignored key.",
       .example = "[my_lab_note]"});
  v.field(
      17,
      "compute_dtype",
      c.compute_dtype,
      {.doc =
           "Operands of matrix products in Temper's own engines, and matrices of the weights "
           "that are published. The trainer keeps weights, gradients and optimizer in "
           "float32. `bfloat16` is faster on CPUs with AVX512-BF16 or AMX; `auto` is `bfloat16` if "
           "the orchestrator's host has such a CPU, else `float32`."});
  v.field(18,
          "lora",
          c.lora,
          {.doc = "Train and publish low-rank adapters only; the weights of the base stay as they "
                  "are. null: train all weights (docs/how-to/lora.md).",
           .example = "{rank: 16, alpha: 32, targets: [q_proj, v_proj]}"});
}

}  // namespace actors

template <>
struct EnumNames<actors::ComputeType> {
  using T = actors::ComputeType;
  static constexpr std::array<std::pair<T, std::string_view>, 3> value{
      {{T::Float32, "float32"}, {T::Bfloat16, "bfloat16"}, {T::Auto, "auto"}}};
};

template <>
struct EnumNames<actors::Architecture> {
  using A = actors::Architecture;
  static constexpr std::array<std::pair<A, std::string_view>, 3> value{
      {{A::Llama, "LlamaForCausalLM"},
       {A::Qwen2, "Qwen2ForCausalLM"},
       {A::Qwen3, "Qwen3ForCausalLM"}}};
};

}  // namespace temper
