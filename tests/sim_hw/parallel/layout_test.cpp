// Valid layouts, and the errors of invalid ones.
#include "sim_hw/layout/layout.hpp"

#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/layout/stages.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/parallel/layout_check.hpp"

#include <gtest/gtest.h>

namespace temper::sim_hw {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

ModelSpec shipped_model(std::string_view name) {
  Catalog catalog = Catalog::shipped();
  const auto found = catalog.model(name);
  EXPECT_TRUE(found) << (found ? "" : found.error().context);
  return **found;
}

/// Cards of 80 GiB; eight by default.
HardwareSpec cards_of(std::int64_t gibibytes) {
  HardwareSpec spec;
  spec.name = "test-card";
  spec.die.memory = Bytes(gibibytes << 30);
  return spec;
}

TrainShape shape_of(std::int64_t batch, std::int64_t seq) {
  TrainShape shape;
  shape.global_batch = batch;
  shape.seq = seq;
  shape.recompute = Recompute::Full;
  return shape;
}

AssertionResult says(const Status& status, std::string_view what, std::string_view nearest) {
  if (status)
    return AssertionFailure() << "accepted";
  const std::string& text = status.error().context;
  if (text.find(what) == std::string::npos || text.find(nearest) == std::string::npos)
    return AssertionFailure() << text;
  return AssertionSuccess();
}

TEST(Layout, AcceptsThePublishedMegatronLayouts) {
  struct Published {
    const char* model;
    std::int64_t pp, vpp, micro_batch, batch;
  };
  for (const Published& p : {Published{"megatron-22b", 1, 1, 4, 4},
                             Published{"gpt3-175b", 8, 3, 1, 64},
                             Published{"turing-nlg-530b", 35, 3, 1, 280},
                             Published{"megatron-1t", 64, 1, 1, 512}}) {
    const ModelSpec spec = shipped_model(p.model);
    Layout layout;
    layout.tp = 8;
    layout.pp = p.pp;
    layout.vpp = p.vpp;
    layout.sequence_parallel = SequenceParallel::On;
    TrainShape shape = default_shape(spec);
    shape.micro_batch = p.micro_batch;
    shape.global_batch = p.batch;
    shape.seq = 2048;
    shape.recompute = Recompute::Selective;
    const Status status = check(spec, cards_of(80), 8 * p.pp, layout, shape);
    EXPECT_TRUE(status) << p.model << ": " << status.error().context;
  }
}

TEST(Layout, AcceptsAttentionOnlyTensorParallelWithUnevenStages) {
  // 61 layers over 16 stages: fifteen of 4 and the last, with head and MTP, of 1; 256 experts over
  // 4 x 8 devices.
  const ModelSpec pangu = shipped_model("pangu-ultra-moe-718b");
  Layout layout;
  layout.tp = 8;
  layout.pp = 16;
  layout.vpp = 2;
  layout.ep = 32;
  layout.dp = 48;
  layout.sequence_parallel = SequenceParallel::On;
  TrainShape shape = shape_of(1536, 8192);
  shape.micro_batch = 2;
  EXPECT_TRUE(check_layout(pangu, 6144, layout, shape));
  EXPECT_EQ(stage_layers(pangu, layout, 14), 4);
  EXPECT_EQ(stage_layers(pangu, layout, 15), 1);
  layout.sequence_parallel = SequenceParallel::Off;
  EXPECT_TRUE(says(check_layout(pangu, 6144, layout, shape), "expert_tp = 1", "expert_tp = 8"));
}

TEST(Layout, StagesContainAllLayers) {
  const ModelSpec deepseek = shipped_model("deepseek-v3");
  for (Layout layout{.pp = 1}; layout.pp <= deepseek.layers; ++layout.pp) {
    std::int64_t sum = 0;
    for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
      EXPECT_GE(stage_layers(deepseek, layout, stage), 1) << layout.pp;
      EXPECT_LE(stage_layers(deepseek, layout, stage), stage_layers(deepseek, layout, 0));
      sum += stage_layers(deepseek, layout, stage);
    }
    EXPECT_EQ(sum, deepseek.layers) << layout.pp;
  }
}

TEST(Layout, RefusesTensorParallelThatDoesNotDivideHeads) {
  Layout layout;
  layout.tp = 8;
  EXPECT_TRUE(says(check_layout(shipped_model("qwen2.5-7b"), 8, layout, shape_of(8, 1024)),
                   "tp = 8 does not divide 28 heads",
                   "nearest: tp = 4"));
}

TEST(Layout, ReplicatesKeyHeadsBelowTensorParallelism) {
  Layout layout;
  layout.tp = 8;  // 4 key heads, each on two devices.
  EXPECT_TRUE(check_layout(
      shipped_model("qwen3-30b-a3b"), 8, {.tp = 8, .expert_tp = 8}, shape_of(8, 1024)));
}

TEST(Layout, RefusesMoreStagesThanLayers) {
  Layout layout;
  layout.pp = 32;
  EXPECT_TRUE(says(check_layout(shipped_model("qwen2.5-7b"), 32, layout, shape_of(32, 1024)),
                   "pp = 32 is more stages than the 28 layers",
                   "nearest: pp = 28"));
}

TEST(Layout, RefusesChunksThatDoNotDivideAStage) {
  Layout layout;
  layout.pp = 4;
  layout.vpp = 3;
  EXPECT_TRUE(says(check_layout(shipped_model("qwen2.5-7b"), 4, layout, shape_of(32, 1024)),
                   "vpp = 3 does not divide the 7 layers",
                   "nearest: vpp = 1"));
}

TEST(Layout, RefusesMicroBatchesThatTheInterleavedScheduleCannotDeal) {
  Layout layout;
  layout.pp = 4;
  layout.vpp = 7;
  EXPECT_TRUE(says(check_layout(shipped_model("qwen2.5-7b"), 4, layout, shape_of(10, 1024)),
                   "10 micro-batches are not a multiple of pp = 4",
                   "nearest: batch = 12"));
}

TEST(Layout, RefusesABatchThatReplicasCannotShare) {
  Layout layout;
  layout.dp = 4;
  EXPECT_TRUE(says(check_layout(shipped_model("qwen2.5-7b"), 4, layout, shape_of(10, 1024)),
                   "batch = 10 is not a multiple of dp * micro-batch = 4 * 1",
                   "nearest: batch = 12"));
}

TEST(Layout, RefusesExpertParallelismThatDoesNotDivide) {
  const ModelSpec moe = shipped_model("qwen3-30b-a3b");
  Layout layout;
  layout.ep = 24;
  layout.dp = 24;
  EXPECT_TRUE(says(check_layout(moe, 24, layout, shape_of(24, 1024)),
                   "ep = 24 does not divide 128 experts",
                   "nearest: ep = 8"));
  layout.ep = 16;
  EXPECT_TRUE(says(check_layout(moe, 24, layout, shape_of(24, 1024)),
                   "ep * expert_tp = 16 * 1 does not divide the 24 devices",
                   "nearest: ep = 8"));
  layout.ep = 8;
  EXPECT_TRUE(check_layout(moe, 24, layout, shape_of(24, 1024)));
  EXPECT_TRUE(says(check_layout(shipped_model("qwen2.5-7b"), 24, layout, shape_of(24, 1024)),
                   "has no experts",
                   "nearest: ep = 1"));
}

TEST(Layout, RefusesAWrongDeviceCount) {
  Layout layout;
  layout.tp = 4;
  layout.dp = 3;
  EXPECT_TRUE(says(check_layout(shipped_model("qwen2.5-7b"), 16, layout, shape_of(12, 1024)),
                   "4 * 1 * 1 * 3 = 12 devices, but there are 16",
                   "nearest: dp = 4"));
}

TEST(Layout, CountsTheDiesOfACard) {
  HardwareSpec spec = cards_of(64);
  spec.dies_per_card = 2;
  Layout layout;
  layout.tp = 4;
  layout.pp = 4;
  const Status status = check(shipped_model("qwen2.5-7b"), spec, 8, layout, shape_of(4, 1024));
  EXPECT_TRUE(status) << status.error().context;
}

TEST(Layout, RefusesMoreBytesThanADeviceHasAndNamesTheLargest) {
  // 7.6e9 parameters x 18 bytes on one device of 80 GiB.
  const Status alone = check(shipped_model("qwen2.5-7b"), cards_of(80), 1, {}, shape_of(1, 1024));
  EXPECT_TRUE(says(alone, "largest: optimizer", "nearest: pp = 2 on 2 devices"));
  EXPECT_EQ(alone.error().code, ErrorCode::OutOfMemory);
}

TEST(Layout, ProposesTheSmallestChangeThatFits) {
  TrainShape shape = shape_of(8, 4096);
  shape.recompute = Recompute::None;
  Layout layout;
  layout.tp = 4;
  shape.micro_batch = 8;
  EXPECT_TRUE(says(check(shipped_model("qwen2.5-7b"), cards_of(80), 4, layout, shape),
                   "largest: activations",
                   "nearest: recompute = full"));
}

TEST(Layout, ProposedChangesFitTheMemory) {
  // The proposal for tp = 4, dp = 2 is ZeRO 1, which fits.
  Layout layout;
  layout.tp = 4;
  layout.dp = 2;
  const TrainShape shape = shape_of(8, 1024);
  const ModelSpec spec = shipped_model("qwen2.5-14b");
  const double whole = worst_train_ledger(spec, layout, shape).total();
  const auto memory = static_cast<std::int64_t>(whole / 1073741824.0) - 1;
  EXPECT_TRUE(
      says(check(spec, cards_of(memory), 8, layout, shape), "optimizer", "nearest: zero = 1"));
  layout.zero = Zero::Optimizer;
  EXPECT_TRUE(check(spec, cards_of(memory), 8, layout, shape));
}

}  // namespace
}  // namespace temper::sim_hw
