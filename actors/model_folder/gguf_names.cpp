#include "actors/model_folder/gguf_names.hpp"

#include "actors/model_folder/layout.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace temper::actors {

std::string_view gguf_architecture(Architecture architecture) {
  switch (architecture) {
    case Architecture::Llama:
      return "llama";
    case Architecture::Qwen2:
      return "qwen2";
    case Architecture::Qwen3:
      break;
  }
  return "qwen3";
}

Result<std::string> gguf_name_of(std::string_view stored) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Pair, 3> kWhole{{{kEmbeddingTensor, "token_embd.weight"},
                                               {kHeadTensor, "output.weight"},
                                               {"model.norm.weight", "output_norm.weight"}}};
  static constexpr std::array<Pair, 11> kOfLayer{{{"input_layernorm.", "attn_norm."},
                                                  {"post_attention_layernorm.", "ffn_norm."},
                                                  {"self_attn.q_proj.", "attn_q."},
                                                  {"self_attn.k_proj.", "attn_k."},
                                                  {"self_attn.v_proj.", "attn_v."},
                                                  {"self_attn.o_proj.", "attn_output."},
                                                  {"self_attn.q_norm.", "attn_q_norm."},
                                                  {"self_attn.k_norm.", "attn_k_norm."},
                                                  {"mlp.gate_proj.", "ffn_gate."},
                                                  {"mlp.up_proj.", "ffn_up."},
                                                  {"mlp.down_proj.", "ffn_down."}}};
  for (const auto& [from, to] : kWhole) {
    if (stored == from)
      return std::string(to);
  }
  constexpr std::string_view kLayers = "model.layers.";
  const std::size_t dot = stored.find('.', kLayers.size());
  if (stored.starts_with(kLayers) && dot != std::string_view::npos) {
    const std::string_view layer = stored.substr(kLayers.size(), dot - kLayers.size());
    const std::string_view rest = stored.substr(dot + 1);
    for (const auto& [from, to] : kOfLayer) {
      if (rest.starts_with(from))
        return fmt::format("blk.{}.{}{}", layer, to, rest.substr(from.size()));
    }
  }
  return corrupt(fmt::format("tensor {} has no equivalent in GGUF", stored));
}

}  // namespace temper::actors
