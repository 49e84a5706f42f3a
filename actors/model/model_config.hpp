// The shape of the policy network. No torch here: every process reads it, few build the network.
#pragma once

#include "core/describe.hpp"

namespace temper::actors {

/// A decoder-only transformer: RMSNorm, rotary positions, grouped-query attention, SwiGLU.
struct ModelConfig {
  std::int32_t hidden = 64;
  std::int32_t layers = 2;
  std::int32_t heads = 4;
  std::int32_t kv_heads = 2;
  std::int32_t ffn = 192;
  Tokens context{32};
  double rope_base = 10000;
  bool operator==(const ModelConfig&) const = default;
};

template <class V>
void describe(V& v, ModelConfig& c) {
  v.field(1, "hidden", c.hidden, {.doc = "Width of the residual stream.", .min = 8, .max = 8192});
  v.field(2, "layers", c.layers, {.doc = "Number of transformer blocks.", .min = 1, .max = 256});
  v.field(3, "heads", c.heads, {.doc = "Query heads; must divide `hidden`.", .min = 1, .max = 256});
  v.field(4,
          "kv_heads",
          c.kv_heads,
          {.doc = "Key and value heads; must divide `heads`.", .min = 1, .max = 256});
  v.field(5, "ffn", c.ffn, {.doc = "Inner width of the SwiGLU layer.", .min = 8, .max = 65536});
  v.field(
      6,
      "context",
      c.context,
      {.doc = "Longest prompt plus response, in tokens.", .min = Tokens(4), .max = Tokens(131072)});
  v.field(7, "rope_base", c.rope_base, {.doc = "Base of the rotary angles.", .min = 10.0});
}

}  // namespace temper::actors
