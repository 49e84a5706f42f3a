// Low-rank adapters (LoRA, Hu et al., 2021): a linear layer with the frozen weight W computes
// y = x W^T + (alpha / rank) (x A^T) B^T, and only A [rank, in] and B [out, rank] are trained.
#pragma once

#include "core/describe.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// Named as in adapter_config.json of peft.
struct LoraConfig {
  static constexpr std::int32_t kMostRank = 4096;
  static constexpr double kLeastAlpha = 1e-3, kMostAlpha = 1e6;
  /// The linear layers of a block.
  static constexpr std::array<std::string_view, 7> kTargets{
      "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

  std::int32_t rank = 16;
  double alpha = 32;
  std::vector<std::string> targets{kTargets.begin(), kTargets.end()};
  bool operator==(const LoraConfig&) const = default;

  double scale() const { return alpha / rank; }
};

void describe(auto& v, LoraConfig& c) {
  v.field(1,
          "rank",
          c.rank,
          {.doc = "Rows of A and columns of B; at most the smaller side of every target.",
           .min = 1,
           .max = LoraConfig::kMostRank});
  v.field(2,
          "alpha",
          c.alpha,
          {.doc = "The adapter's output is scaled by alpha / rank.",
           .min = LoraConfig::kLeastAlpha,
           .max = LoraConfig::kMostAlpha});
  v.field(3,
          "targets",
          c.targets,
          {.doc = "Linear layers with an adapter, in every block: `q_proj`, `k_proj`, `v_proj`, "
                  "`o_proj`, `gate_proj`, `up_proj` and `down_proj`.",
           .example = "[q_proj, v_proj]"});
}

}  // namespace temper::actors
