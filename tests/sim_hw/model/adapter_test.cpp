// Adapters of a model by dimensions: parameters, how a layout splits them, and what is refused.
#include "sim_hw/model/adapter.hpp"

#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/memory/weights.hpp"
#include "tests/support/adapter_targets.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::sim_hw {
namespace {

using test::kLatentTargets, test::kPlainTargets, test::Targets;

const ModelSpec& described(std::string_view name) {
  static Catalog catalog = Catalog::shipped();
  return **catalog.model(name);
}

Adapter made(std::string_view name, std::int64_t rank, const Targets& targets) {
  return make_adapter(described(name), rank, targets).value();
}

std::string refused(std::string_view name, std::int64_t rank, const Targets& targets) {
  const auto result = make_adapter(described(name), rank, targets);
  return result ? "" : result.error().context;
}

TEST(Adapter, HasTheTrainableParametersThatPeftPrints) {
  // "trainable params", as the documentation of peft and of Unsloth show them.
  const Targets of_paper{"q_proj", "v_proj"};
  EXPECT_EQ(adapter_parameters(described("llama-2-7b"), made("llama-2-7b", 8, of_paper)), 4194304);
  EXPECT_EQ(adapter_parameters(described("llama-3.1-8b"), made("llama-3.1-8b", 16, kPlainTargets)),
            41943040);
}

TEST(Adapter, EveryExpertAndMtpModuleHasItsOwn) {
  constexpr std::string_view kName = "pangu-ultra-moe-718b";
  const ModelSpec& pangu = described(kName);  // 61 layers, 3 of them dense, and one MTP module.
  const std::int64_t h = 7680;
  const std::int64_t attention = (h + 1536) + (1536 + 128 * 192) + (h + 512 + 64) +
                                 (512 + 128 * (128 + 128)) + (128 * 128 + h);
  const std::int64_t dense = 3 * (h + 18432), expert = 3 * (h + 2048);
  const Adapter all = made(kName, 8, kLatentTargets);
  EXPECT_EQ(adapter_parameters(pangu, all),
            8 * (62 * attention + 3 * dense + 59 * (256 + 1) * expert));
  EXPECT_EQ(active_adapter_parameters(pangu, all),
            8 * (61 * attention + 3 * dense + 58 * (8 + 1) * expert));
  EXPECT_EQ(adapter_parameters(pangu, made(kName, 64, {"o_proj"})), 64 * 62 * (128 * 128 + h));
}

TEST(Adapter, IsProportionalToItsRank) {
  for (const std::string_view name : {"qwen3-30b-a3b", "qwen2.5-7b"}) {
    const std::int64_t one = adapter_parameters(described(name), made(name, 1, kPlainTargets));
    EXPECT_EQ(adapter_parameters(described(name), made(name, 64, kPlainTargets)), 64 * one);
  }
}

/// Parameters that all devices of a layout hold, each one once.
double held(const ModelSpec& m, const Layout& layout, const Adapter& a) {
  TrainShape shape;
  shape.adapter = a;
  double sum = 0;
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    const StageParameters own = stage_parameters(m, layout, a, stage);
    const StageParameters whole = replicated_parameters(m, layout, shape, stage);
    sum += static_cast<double>(layout.tp) * (own.layers - whole.layers) + whole.layers +
           static_cast<double>(layout.ep * layout.expert_tp) * (own.experts - whole.experts) +
           static_cast<double>(layout.ep) * whole.experts;
  }
  return sum;
}

TEST(Adapter, DevicesOfALayoutHoldAllOfIt) {
  for (const std::string_view name : {"pangu-ultra-moe-718b", "qwen3-30b-a3b", "qwen2.5-7b"}) {
    const ModelSpec& m = described(name);
    const Adapter a = made(name, 16, m.latent ? kLatentTargets : kPlainTargets);
    const auto all = static_cast<double>(adapter_parameters(m, a));
    for (const std::int64_t tp : {1, 2, 4}) {
      for (const std::int64_t pp : {1, 4}) {
        Layout layout;
        layout.tp = tp;
        layout.pp = pp;
        layout.dp = 8;
        layout.ep = m.moe ? 4 : 1;
        layout.expert_tp = m.moe ? 2 : 1;
        EXPECT_NEAR(held(m, layout, a), all, 1e-9 * all) << name << ", tp " << tp << ", pp " << pp;
      }
    }
  }
}

TEST(Adapter, RefusesWhatTheModelLacksAndNamesWhatItHas) {
  EXPECT_EQ(refused("pangu-ultra-moe-718b", 8, {"q_proj"}),
            "targets: openPangu-Ultra-MoE-718B has no q_proj; nearest: q_a_proj and q_b_proj. It "
            "has `q_a_proj`, `q_b_proj`, `kv_a_proj_with_mqa`, `kv_b_proj`, `o_proj`, `gate_proj`, "
            "`up_proj`, `down_proj`");
  EXPECT_NE(refused("pangu-ultra-moe-718b", 8, kPlainTargets).find("has no q_proj"),
            std::string::npos);
  EXPECT_NE(refused("pangu-ultra-moe-718b", 8, {"v_proj"})
                .find("nearest: kv_a_proj_with_mqa and kv_b_proj"),
            std::string::npos);
  EXPECT_NE(refused("qwen2.5-7b", 8, {"q_b_proj"}).find("nearest: q_proj"), std::string::npos);
  EXPECT_NE(refused("gpt3-175b", 8, {"gate_proj"}).find("nearest: up_proj and down_proj"),
            std::string::npos);
  EXPECT_NE(refused("qwen2.5-7b", 8, {"lm_head"}).find("found \"lm_head\""), std::string::npos);
  EXPECT_EQ(refused("qwen2.5-7b", 8, {"q_proj", "q_proj"}),
            "targets: q_proj is repeated; remove one");
  EXPECT_NE(refused("qwen2.5-7b", 8, {}).find("targets: expected at least one of"),
            std::string::npos);
  EXPECT_EQ(refused("qwen2.5-7b", 513, {"k_proj"}),
            "rank: must be at least 1 and at most 512, the smaller side of k_proj (512 x 3584) of "
            "Qwen2.5-7B; found 513");
  EXPECT_NE(refused("qwen2.5-7b", 0, {"k_proj"}).find("rank: "), std::string::npos);
}

}  // namespace
}  // namespace temper::sim_hw
