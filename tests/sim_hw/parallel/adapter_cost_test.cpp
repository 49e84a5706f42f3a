// A training step and an engine's step with an adapter beside frozen weights.
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/flops.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/parallel/train_traffic.hpp"
#include "sim_hw/steps/steps.hpp"
#include "tests/support/adapter_targets.hpp"

#include <gtest/gtest.h>

namespace temper::sim_hw {
namespace {

using test::kLatentTargets, test::kPlainTargets, test::Targets;

const Targets kAttention{"q_proj", "k_proj", "v_proj", "o_proj"};

class AdapterCost : public testing::Test {
 protected:
  AdapterCost() {
    layout_.tp = 2;
    layout_.pp = 2;
    layout_.dp = 4;
    layout_.ep = 4;
    layout_.zero = Zero::Optimizer;
    layout_.sequence_parallel = SequenceParallel::On;
  }

  const ModelSpec& model(std::string_view name) { return **catalog_.model(name); }
  Adapter adapter(std::string_view name, std::int64_t rank, const Targets& targets) {
    return make_adapter(model(name), rank, targets).value();
  }
  static TrainShape shape(const std::optional<Adapter>& adapter, Recompute recompute) {
    TrainShape s;
    s.seq = 4096;
    s.global_batch = 32;
    s.recompute = recompute;
    s.states.gradient = 2;
    s.adapter = adapter;
    return s;
  }
  TrainTime time(std::string_view name, const std::optional<Adapter>& adapter) {
    return train_iteration_time(
        model(name), device_, fabric_, layout_, shape(adapter, Recompute::Full));
  }
  LayerCost layer(std::string_view name, const std::optional<Adapter>& adapter, LayerKind kind) {
    const TrainShape s = shape(adapter, Recompute::None);
    const Layout alone;
    return layer_cost({model(name), device_, fabric_, alone, s}, kind);
  }

  Catalog catalog_ = Catalog::shipped();
  Device device_ = make_device(**catalog_.hardware("cm384"));
  Fabric fabric_ = make_fabric(**catalog_.hardware("cm384"));
  Layout layout_;
};

constexpr std::string_view kModel = "qwen3-30b-a3b";

TEST_F(AdapterCost, ALayerTakesAtLeastItsForwardPassAndInputGradients) {
  for (const auto& [name, targets, kind] :
       {std::tuple{kModel, kPlainTargets, LayerKind::Experts},
        {std::string_view("qwen2.5-7b"), kAttention, LayerKind::Dense},
        {std::string_view("pangu-ultra-moe-718b"), kLatentTargets, LayerKind::Experts}}) {
    const LayerCost full = layer(name, {}, kind);
    const double frozen = full.time.total() - full.weight_gradient;
    double before = frozen;
    for (const std::int64_t rank : {1, 2, 8, 16, 64, 128}) {
      const LayerCost with = layer(name, adapter(name, rank, targets), kind);
      EXPECT_GT(with.time.total(), before) << name << ", rank " << rank;
      EXPECT_GT(with.forward, full.forward);
      before = with.time.total();
    }
    const LayerCost least = layer(name, adapter(name, 1, targets), kind);
    EXPECT_LT(least.weight_gradient, full.weight_gradient);
  }
}

TEST_F(AdapterCost, AStepGrowsWithTheRankAndWithTheTargets) {
  double before = 0;
  for (const std::int64_t rank : {1, 8, 64, 256}) {
    const double all = time(kModel, adapter(kModel, rank, kPlainTargets)).total();
    EXPECT_GT(all, before);
    EXPECT_GT(all, time(kModel, adapter(kModel, rank, kAttention)).total());
    before = all;
  }
  EXPECT_LT(time(kModel, adapter(kModel, 8, kAttention)).total(), time(kModel, {}).total());
}

TEST_F(AdapterCost, OnlyTheAdapterIsAccumulatedExchangedAndUpdated) {
  const TrainTime full = time(kModel, {});
  const TrainTime with = time(kModel, adapter(kModel, 8, kAttention));
  EXPECT_LT(with.stage.accumulation, 0.01 * full.stage.accumulation);
  EXPECT_LT(with.optimizer - device_.k.optimizer_latency,
            0.01 * (full.optimizer - device_.k.optimizer_latency));
  EXPECT_LT(with.data_parallel, full.data_parallel);
}

TEST_F(AdapterCost, ExchangesItsParametersOnceAndSumsWhatAllDevicesHold) {
  const Adapter a = adapter(kModel, 8, kPlainTargets);
  const TrainShape full = shape({}, Recompute::Full), with = shape(a, Recompute::Full);
  const ModelSpec& m = model(kModel);
  const StepTraffic before = train_traffic(m, device_, fabric_, layout_, full);
  const StepTraffic after = train_traffic(m, device_, fabric_, layout_, with);
  EXPECT_EQ(after.expert.total(), before.expert.total());
  EXPECT_EQ(after.pipeline.total(), before.pipeline.total());
  double dense = 0, experts = 0, whole = 0;
  for (std::int64_t stage = 0; stage < layout_.pp; ++stage) {
    const StageParameters own = stage_parameters(m, layout_, a, stage);
    dense += own.layers;
    experts += own.experts;
    whole += replicated_parameters(m, layout_, with, stage).layers;
  }
  // 4 replicas of attention, 2 of each expert; 8 devices per stage; 2 bytes both ways. The sum over
  // tensor parallelism: each of 2 devices sends half of it twice.
  EXPECT_NEAR(after.data.total(), 8 * 4 * (dense * 3 / 4 + experts / 2), 1e-9 * after.data.total());
  EXPECT_NEAR(
      after.tensor.total() - before.tensor.total(), 8 * 2 * whole, 1e-9 * after.tensor.total());
}

TEST_F(AdapterCost, LedgersHaveFrozenWeightsOnceWithoutStates) {
  const ModelSpec& m = model(kModel);
  const Adapter a = adapter(kModel, 8, kPlainTargets);
  for (const Zero zero : {Zero::None, Zero::Optimizer}) {
    Layout layout = layout_;
    layout.zero = zero;
    for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
      const Ledger full = train_ledger(m, layout, shape({}, Recompute::Full), stage);
      const Ledger with = train_ledger(m, layout, shape(a, Recompute::Full), stage);
      const StageParameters own = stage_parameters(m, layout, a, stage);
      EXPECT_DOUBLE_EQ(with.weights, full.weights + 2 * own.total());
      EXPECT_DOUBLE_EQ(with.gradients, 2 * own.total());
      const double shard = zero == Zero::None ? own.total() : own.layers / 4 + own.experts / 2;
      EXPECT_DOUBLE_EQ(with.optimizer, 12 * shard);
      EXPECT_LT(with.total(), full.total());
    }
  }
}

TEST_F(AdapterCost, FrozenProductsWithoutAnAdapterSaveNoInput) {
  const ModelSpec& m = model("qwen2.5-7b");
  const auto bytes = [&](const std::optional<Adapter>& a) {
    const TrainShape s = shape(a, Recompute::None);
    return saved_tensors(m, s, LayerKind::Dense).bytes_per_token({}, s, Recompute::None);
  };
  const double full = bytes({});
  const double norms = 2.0 * static_cast<double>(m.hidden),
               inner = 2.0 * static_cast<double>(m.ffn);
  const auto of = [&](const Targets& targets, std::int64_t rank = 4) {
    return bytes(adapter("qwen2.5-7b", rank, targets));
  };
  EXPECT_DOUBLE_EQ(of(kPlainTargets), full + 2 * 4 * 7)
      << "seven times the columns between A and B";
  EXPECT_DOUBLE_EQ(of({"q_proj"}), full - norms - inner + 2 * 4);
  EXPECT_DOUBLE_EQ(of({"up_proj"}), full - norms - inner + 2 * 4);
  EXPECT_DOUBLE_EQ(of({"down_proj"}), full - 2 * norms + 2 * 4);
  EXPECT_DOUBLE_EQ(of({"o_proj"}), full - 2 * norms - inner + 2 * 4)
      << "attention itself needs its output";
}

TEST_F(AdapterCost, CountsTwoPassesOfFrozenWeightsAndThreeOfTheAdapter) {
  const ModelSpec& m = model("qwen2.5-7b");
  const Adapter a = adapter("qwen2.5-7b", 16, kPlainTargets);
  const ModelFlops full(m), with(m, a);
  const ForwardWork w = whole_sequence(1000);
  const double products = 2000.0 * static_cast<double>(active_adapter_parameters(m, a));
  EXPECT_DOUBLE_EQ(with.forward(w), full.forward(w) + products);
  EXPECT_NEAR(with.training(w),
              3 * products + 2 * full.forward(w) + full.per_pair * w.pairs,
              1e-9 * full.training(w));
}

TEST_F(AdapterCost, EveryPassOfAnEngineTakesLongerWithAnAdapter) {
  for (const auto& [name, targets] : {std::pair{kModel, kPlainTargets},
                                      {std::string_view("qwen2.5-7b"), Targets{"q_proj"}},
                                      {std::string_view("pangu-ultra-moe-718b"), kLatentTargets}}) {
    const ModelSpec& m = model(name);
    const StepModel base = make_step_model(m, 2);
    for (const double tokens : {1.0, 16.0, 200.0, 4096.0}) {
      double decode = decode_seconds(device_, base, {tokens, 2000});
      double prefill = prefill_seconds(device_, base, {1, tokens});
      for (const std::int64_t rank : {1, 8, 64}) {
        const StepModel with = make_step_model(m, 2, 1, adapter(name, rank, targets));
        const double longer = decode_seconds(device_, with, {tokens, 2000});
        EXPECT_GT(longer, decode) << name << ", rank " << rank << ", batch " << tokens;
        decode = longer;
        const double pass = prefill_seconds(device_, with, {1, tokens});
        EXPECT_GE(pass, prefill) << name << ", rank " << rank << ", tokens " << tokens;
        prefill = pass;
      }
    }
  }
}

}  // namespace
}  // namespace temper::sim_hw
