// Number formats and speculation of rollout engines: memory, and moves of weights.
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/model/parameters.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

using sim_hw::CacheFormat;
using sim_hw::Draft;
using sim_hw::WeightFormat;

/// 32 cards of a CM384 (64 devices, 16 replicas) with the 718B model, and a trainer of 128 cards.
SimulationSettings engine(WeightFormat weights, CacheFormat cache) {
  SimulationSettings s = testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = s.rollout_cards = 32;
  s.trainer_cards = 128;
  s.config.rollout.tp = 4;
  s.config.rollout.ep = 64;
  s.config.rollout.kv_share = 0.5;
  s.config.rollout.weights = weights;
  s.config.rollout.kv_cache = cache;
  s.config.trainer = {.tp = 8, .pp = 8, .ep = 32};
  return s;
}

const SimulationSettings kWide = engine(WeightFormat::Bf16, CacheFormat::Bf16);

SimulationSettings drafting() {
  SimulationSettings s = engine(WeightFormat::Int8, CacheFormat::Int8);
  s.config.trainer.mtp = true;
  s.config.rollout.speculation = {.depth = 1, .acceptance = 0.7};
  return s;
}

TEST(EngineFormats, EightBitWeightsTakeHalfTheMemory) {
  const ActorMemory wide = rollout_memory(kWide);
  const ActorMemory narrow = rollout_memory(engine(WeightFormat::Int8, CacheFormat::Bf16));
  EXPECT_EQ(narrow.device.weights, wide.device.weights / 2);
  EXPECT_EQ(narrow.host.weights, wide.host.weights / 2) << "the staged version";
  EXPECT_NEAR(narrow.device.kv_cache - wide.device.kv_cache,
              0.5 * narrow.device.weights,
              0.01 * narrow.device.weights)
      << "the cache gets its share of what they leave";
  const ActorMemory scaled = rollout_memory(engine(WeightFormat::Mxfp8, CacheFormat::Bf16));
  EXPECT_EQ(scaled.device.weights, narrow.device.weights * (1 + 1.0 / 32));
}

TEST(EngineFormats, EightBitCachesHoldTwiceTheTokens) {
  const auto wide = kv_tokens(kWide).count();
  const auto narrow = kv_tokens(engine(WeightFormat::Bf16, CacheFormat::Int8)).count();
  EXPECT_NEAR(static_cast<double>(narrow), 2.0 * static_cast<double>(wide), 128);
  EXPECT_EQ(kv_token_bytes(engine(WeightFormat::Bf16, CacheFormat::Fp8)),
            kv_token_bytes(kWide) / 2);
}

TEST(EngineFormats, EightBitWeightsMoveAsHalfTheBytes) {
  const SimulationSettings narrow = engine(WeightFormat::Int8, CacheFormat::Bf16);
  const sim_hw::Fabric fabric = sim_hw::make_fabric(kWide.cluster);
  const double wide_bytes = publish_weights(fabric, kWide).received.total();
  EXPECT_NEAR(publish_weights(fabric, narrow).received.total(), wide_bytes / 2, 1e-9 * wide_bytes);
  EXPECT_LT(publish_seconds(fabric, narrow), 0.6 * publish_seconds(fabric, kWide));
  EXPECT_EQ(swap_bytes(narrow), swap_bytes(kWide) / 2);
  EXPECT_EQ(moved_bytes(rollout_memory(narrow)), moved_bytes(rollout_memory(kWide)) / 2);
  EXPECT_EQ(trainer_memory(narrow).device.total(), trainer_memory(kWide).device.total());
}

TEST(EngineFormats, DraftingModulesAreHeldAndPublished) {
  const SimulationSettings with = drafting();
  const SimulationSettings without = engine(WeightFormat::Int8, CacheFormat::Int8);
  const ActorMemory memory = rollout_memory(with);
  EXPECT_GT(memory.device.weights, rollout_memory(without).device.weights);
  EXPECT_EQ(kv_token_bytes(with), kv_token_bytes(without) * 62 / 61) << "61 layers, one module";

  const sim_hw::Fabric fabric = sim_hw::make_fabric(with.cluster);
  const double module =
      static_cast<double>(sim_hw::count_parameters(with.model).mtp) / 64;  // A byte each.
  const double more = (publish_weights(fabric, with).received.total() -
                       publish_weights(fabric, without).received.total()) /
                      64;
  EXPECT_GT(more, module) << "attention is held by 16 replicas";
  EXPECT_LT(more, 2 * module);
}

TEST(EngineFormats, AnEagleDraftIsHeldAndNotPublished) {
  const SimulationSettings without = engine(WeightFormat::Int8, CacheFormat::Int8);
  SimulationSettings with = without;
  with.config.rollout.speculation = {.depth = 3, .acceptance = 0.5, .method = Draft::Eagle};
  ASSERT_TRUE(check_rollout(with)) << "without simulation.trainer.mtp";
  const double draft = frozen_draft_bytes(with);
  EXPECT_GT(draft, 2 * 7680 * 7680) << "the projection alone, a byte per weight";
  EXPECT_LT(draft, 4 * 2 * 7680 * 7680);
  EXPECT_NEAR(
      rollout_memory(with).device.weights, rollout_memory(without).device.weights + draft, 1);
  EXPECT_EQ(rollout_memory(with).host.weights, rollout_memory(without).host.weights)
      << "the staged version";
  EXPECT_EQ(kv_token_bytes(with), kv_token_bytes(without) * 62 / 61);
  EXPECT_LT(kv_tokens(with), kv_tokens(without));
  const sim_hw::Fabric fabric = sim_hw::make_fabric(with.cluster);
  EXPECT_EQ(publish_seconds(fabric, with), publish_seconds(fabric, without));
  EXPECT_NEAR(swap_bytes(with), swap_bytes(without), 1);

  with.config.rollout.weights = WeightFormat::Bf16;
  EXPECT_EQ(frozen_draft_bytes(with), 2 * draft);
  with.config.rollout.speculation.method = Draft::None;
  EXPECT_EQ(frozen_draft_bytes(with), 0);
}

TEST(EngineFormats, NgramDraftsTakeNoMemoryButLogits) {
  const SimulationSettings without = engine(WeightFormat::Int8, CacheFormat::Int8);
  SimulationSettings with = without;
  with.config.rollout.speculation = {.depth = 3, .acceptance = 0.25, .method = Draft::Ngram};
  ASSERT_TRUE(check_rollout(with));
  EXPECT_EQ(kv_token_bytes(with), kv_token_bytes(without));
  sim_hw::Ledger memory = rollout_memory(with).device;
  EXPECT_EQ(memory.head, 4 * rollout_memory(without).device.head);
  memory.head = rollout_memory(without).device.head;
  EXPECT_EQ(memory.total(), rollout_memory(without).device.total());
}

TEST(EngineFormats, SpeculationNamesWhatItLacks) {
  const auto refused = [](const SimulationSettings& s) {
    const Status status = check_rollout(s);
    return status ? "" : status.error().context;
  };
  SimulationSettings s = drafting();
  EXPECT_EQ(refused(s), "");
  s.config.trainer.mtp = false;
  EXPECT_EQ(refused(s),
            "speculation.depth = 1, but the trainer does not train the MTP modules, so that they "
            "would not follow the weights; nearest: simulation.trainer.mtp = true, or depth = 0");
  s = drafting();
  s.config.rollout.speculation.acceptance = 0;
  EXPECT_EQ(refused(s),
            "speculation.depth = 1, but speculation.acceptance = 0: expected the share of drafts "
            "that are accepted");
  s.model.mtp_layers = 0;
  EXPECT_EQ(
      refused(s),
      "speculation.depth = 1, but openPangu-Ultra-MoE-718B has no MTP modules; nearest: depth = 0");
  s.config.rollout.speculation = {.method = Draft::Ngram};
  EXPECT_EQ(refused(s),
            "speculation.method = ngram, but speculation.depth = 0, so that nothing is drafted; "
            "nearest: depth = 1, or method = none");
  s.config.rollout.speculation = {.disable_by_batch_size = 32};
  EXPECT_EQ(refused(s),
            "speculation.disable_by_batch_size = 32, but speculation.depth = 0, so that there is "
            "nothing to disable; nearest: depth = 1, or no disable_by_batch_size");
  s.config.rollout.speculation = {.depth = 3, .method = Draft::None};
  EXPECT_EQ(refused(s), "") << "of any depth";
}

}  // namespace
}  // namespace temper::actors
