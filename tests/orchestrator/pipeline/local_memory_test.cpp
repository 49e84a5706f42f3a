// Predicted memory of the processes of a card.
#include "orchestrator/pipeline/local_memory.hpp"

#include "orchestrator/pipeline/validate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace temper::orchestrator {
namespace {

/// A model whose KV cache dominates the memory of the run.
PipelineConfig config(PlacementMode mode) {
  PipelineConfig c;
  c.model.hidden = 256;
  c.model.layers = 4;
  c.model.ffn = 512;
  c.model.context = Tokens(64);
  c.rollout.concurrency = 2048;
  c.placement.mode = mode;
  return c;
}

double bytes_of(const LocalLedger& ledger,
                std::string_view phase,
                std::string_view actor,
                std::string_view what) {
  double sum = 0;
  for (const CardLedger& card : ledger.cards) {
    for (const LocalBytes& part : card.parts)
      sum += card.phase == phase && part.actor == actor && part.what == what ? part.bytes : 0;
  }
  return sum;
}

std::vector<BrokenRule> broken(PipelineConfig c, Bytes limit) {
  c.placement.card_memory = limit;
  return validate(c, std::nullopt);
}

Bytes above(double bytes) {
  return Bytes(static_cast<std::int64_t>(bytes) + 1);
}

double fullest(const LocalLedger& ledger) {
  double most = 0;
  for (const CardLedger& card : ledger.cards)
    most = std::max(most, card.bytes());
  return most;
}

TEST(LocalMemory, ACardHoldsWhatItsActorsHoldWhileTheyAreAtOneThing) {
  const LocalLedger fused = local_ledger(config(PlacementMode::Fused)).value();
  const double w = bytes_of(fused, "train", "trainer", "weights");
  EXPECT_GT(w, 0);
  EXPECT_EQ(bytes_of(fused, "train", "trainer", "optimizer"), 2 * w);
  EXPECT_GT(bytes_of(fused, "train", "trainer", "activations"), 0);
  EXPECT_EQ(bytes_of(fused, "rollout", "trainer", "optimizer"), 0) << "it is in host memory";
  EXPECT_EQ(fused.host, 4 * w) << "two images, and the states of the optimizer";
  // 4 layers, keys and values of 2 of the 4 heads of 64, 2048 slots of 64 positions.
  EXPECT_EQ(bytes_of(fused, "rollout", "rollout-0", "KV cache"), 4.0 * 4 * 2 * 128 * 2048 * 64);
  EXPECT_EQ(bytes_of(fused, "train", "rollout-0", "KV cache"), 0);
  EXPECT_EQ(bytes_of(fused, "train", "reference-0", "weights"), 0);
  EXPECT_EQ(bytes_of(fused, "score", "reference-0", "weights"), w);
  const LocalLedger separate = local_ledger(config(PlacementMode::Separate)).value();
  EXPECT_EQ(separate.cards.size(), 2U);
  EXPECT_GT(separate.most(), fused.most());
}

TEST(LocalMemory, HalvesTheMatricesThatAnEngineAndImagesHoldInBfloat16) {
  PipelineConfig c = config(PlacementMode::Fused);
  const LocalLedger exact = local_ledger(c).value();
  c.model.compute_dtype = actors::ComputeType::Bfloat16;
  const LocalLedger rounded = local_ledger(c).value();
  const double w = bytes_of(exact, "train", "trainer", "weights");
  EXPECT_EQ(bytes_of(rounded, "train", "trainer", "weights"), w);
  EXPECT_EQ(bytes_of(exact, "rollout", "rollout-0", "weights"), w);
  const double published = bytes_of(rounded, "rollout", "rollout-0", "weights");
  // 9 norms of 256 floats keep their 4 bytes.
  EXPECT_NEAR(published, w / 2 + 9 * 256 * 2, 16 * 4);
  EXPECT_EQ(rounded.host, 2 * published + 2 * w);
}

TEST(LocalMemory, ATrainerHoldsFrozenWeightsAsAnEngineDoes) {
  for (const auto type : {actors::ComputeType::Float32, actors::ComputeType::Bfloat16}) {
    PipelineConfig c = config(PlacementMode::Separate);
    c.model.compute_dtype = type;
    c.model.lora = actors::LoraConfig{.rank = 2, .alpha = 4};
    const LocalLedger ledger = local_ledger(c).value();
    EXPECT_EQ(bytes_of(ledger, "separate", "trainer", "weights"),
              bytes_of(ledger, "separate", "rollout-0", "weights"));
  }
}

TEST(LocalMemory, ATrainerOfAnAdapterComputesInputsOfLayersAgain) {
  PipelineConfig c = config(PlacementMode::Separate);
  const auto activations = [&] {
    return bytes_of(local_ledger(c).value(), "separate", "trainer", "activations");
  };
  const double all = activations();
  c.model.lora = actors::LoraConfig{.rank = 2, .alpha = 4};
  // Outputs of two norms and of the activation, in 4 layers.
  const double each = 4.0 * 4 * (2 * 256 + 512);
  const double rows = (all - activations()) / each;
  EXPECT_GT(rows, 1);
  EXPECT_EQ(rows, std::floor(rows));
}

TEST(LocalMemory, AnEngineThatFinishesResponsesHoldsAsManyOlderVersionsAsTheBound) {
  PipelineConfig c = config(PlacementMode::Separate);
  c.staleness.bound = 3;
  const auto older = [&] {
    return bytes_of(local_ledger(c).value(), "separate", "rollout-0", "older versions");
  };
  EXPECT_EQ(older(), 0);
  c.rollout.on_new_weights = rollout::OnNewWeights::Finish;
  EXPECT_EQ(older(), 3 * bytes_of(local_ledger(c).value(), "separate", "rollout-0", "weights"));
}

TEST(LocalMemory, AFusedRunFitsALimitThatSeparatePlacementCannotMeet) {
  const double fused = fullest(local_ledger(config(PlacementMode::Fused)).value());
  const double separate = fullest(local_ledger(config(PlacementMode::Separate)).value());
  ASSERT_LT(fused * 1.2, separate);
  EXPECT_TRUE(broken(config(PlacementMode::Fused), above(fused)).empty());
  EXPECT_TRUE(broken(config(PlacementMode::Separate), above(separate)).empty());
  const auto refused = broken(config(PlacementMode::Separate), above(fused));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused.front().keys.front(), "placement.card_memory");
  for (const char* said : {"card 0 needs ", " MiB, found ", "rollout-0 ", "KV cache ", "process "})
    EXPECT_NE(refused.front().message.find(said), std::string::npos) << refused.front().message;
  EXPECT_TRUE(refused.front().message.ends_with("; nearest: placement.mode: fused") ||
              refused.front().message.ends_with("; nearest: placement.mode: colocated"))
      << refused.front().message;
}

TEST(LocalMemory, WhatNoPlacementHoldsIsToldWithLessOfWhatFillsIt) {
  for (const auto& [micro_batch, phase, nearest] :
       {std::tuple{16384, "`train`", "algorithm.micro_batch_tokens: 8192"},
        std::tuple{2048, "`rollout`", "rollout.concurrency: 1024"}}) {
    PipelineConfig c = config(PlacementMode::Fused);
    c.algorithm.micro_batch_tokens = Tokens(micro_batch);
    const double fused = fullest(local_ledger(c).value());
    const auto refused = broken(c, above(fused * 0.9));
    ASSERT_EQ(refused.size(), 1U);
    const std::string& message = refused.front().message;
    EXPECT_NE(message.find(fmt::format("in phase {}", phase)), std::string::npos) << message;
    EXPECT_TRUE(message.ends_with(fmt::format("; nearest: {}", nearest))) << message;
  }
}

TEST(LocalMemory, IsNotKnownOfEnginesOfOthers) {
  PipelineConfig c = config(PlacementMode::Separate);
  c.policy = actors::PolicyKind::Synthetic;
  EXPECT_EQ(broken(c, Bytes(1 << 30)).size(), 1U);
  EXPECT_TRUE(broken(c, Bytes(0)).empty());
}

}  // namespace
}  // namespace temper::orchestrator
