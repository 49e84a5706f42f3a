// Bytes: published formulas of 2205.05198, measured peaks of a PyTorch step, and sums that must
// hold.
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/memory/activations.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/memory/torch_training.hpp"
#include "sim_hw/model/parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace temper::sim_hw {
namespace {

constexpr double kGib = 1073741824.0;

ModelSpec model(std::string_view name) {
  Catalog catalog = Catalog::shipped();
  const auto found = catalog.model(name);
  EXPECT_TRUE(found) << (found ? "" : found.error().context);
  return **found;
}

struct Megatron {
  const char* model;
  std::int64_t micro_batch, batch, pp, vpp;
};
constexpr Megatron k22b{"megatron-22b", 4, 4, 1, 1};
constexpr Megatron k175b{"gpt3-175b", 1, 64, 8, 3};
constexpr Megatron k530b{"turing-nlg-530b", 1, 280, 35, 3};
constexpr Megatron k1t{"megatron-1t", 1, 512, 64, 1};

struct MemoryCase {
  ModelSpec model;
  Layout layout;
  TrainShape shape;
};
MemoryCase make(const Megatron& megatron, Recompute recompute, SequenceParallel sequence) {
  MemoryCase c{model(megatron.model), {}, {}};
  c.layout.tp = 8;
  c.layout.pp = megatron.pp;
  c.layout.vpp = megatron.vpp;
  c.layout.sequence_parallel = sequence;
  c.shape = default_shape(c.model);
  c.shape.micro_batch = megatron.micro_batch;
  c.shape.global_batch = megatron.batch;
  c.shape.seq = 2048;
  c.shape.recompute = recompute;
  return c;
}

double activations_gib(const Megatron& megatron, Recompute recompute, SequenceParallel sequence) {
  const MemoryCase c = make(megatron, recompute, sequence);
  return train_ledger(c.model, c.layout, c.shape, 0).activations / kGib;
}

TEST(Activations, OfAGptLayerHaveThePublishedCoefficients) {
  for (const Megatron& megatron : {k22b, k175b, k530b, k1t}) {
    const MemoryCase c = make(megatron, Recompute::None, SequenceParallel::Off);
    const SavedTensors saved = saved_tensors(c.model, c.shape, LayerKind::Dense);
    const double h = static_cast<double>(c.model.hidden);
    const double scores = 5 * static_cast<double>(c.model.heads) * 2048 / h;
    // Without sequence parallelism: s b h (10 + 24/t + 5 a s / (h t)).
    EXPECT_NEAR(saved.bytes_per_token(c.layout, c.shape, Recompute::None) / h,
                10 + 24.0 / 8 + scores / 8,
                1e-9);
    EXPECT_NEAR(saved.bytes_per_token(c.layout, c.shape, Recompute::Selective) / h, 13, 1e-9);
    Layout sequence = c.layout;
    sequence.sequence_parallel = SequenceParallel::On;
    EXPECT_NEAR(
        saved.bytes_per_token(sequence, c.shape, Recompute::None) / h, (34 + scores) / 8, 1e-9);
    EXPECT_NEAR(saved.bytes_per_token(sequence, c.shape, Recompute::Selective) / h, 34.0 / 8, 1e-9);
  }
}

TEST(Activations, OfASwiGluGroupedQueryLayerAreTheSumOfItsTensors) {
  // h = 3584, 4 of 28 heads for keys: norms 8 h, q and output 4 h, k and v 4 * 512, logsumexp 4 *
  // 28, gate, up, product 6 f.
  const ModelSpec qwen = model("qwen2.5-7b");
  const SavedTensors saved = saved_tensors(qwen, default_shape(qwen), LayerKind::Dense);
  EXPECT_DOUBLE_EQ(saved.bytes_per_token({}, {}, Recompute::None),
                   12.0 * 3584 + 4 * 512 + 4 * 28 + 6 * 18944);
}

TEST(Activations, OfExpertsGrowWithTheImbalanceAndNotWithTheExpertsOfADevice) {
  const ModelSpec moe = model("qwen3-30b-a3b");
  const SavedTensors saved = saved_tensors(moe, {}, LayerKind::Experts);
  TrainShape balanced, skewed;
  skewed.expert_imbalance = 1.5;
  // Per token 8 copies of 2 x 2 h and 6 x 768 bytes.
  const double routed = 8 * (4.0 * 2048 + 6 * 768);
  EXPECT_NEAR(saved.bytes_per_token({}, skewed, Recompute::None) -
                  saved.bytes_per_token({}, balanced, Recompute::None),
              routed / 2,
              1e-6);
}

TEST(Ledger, MatchesThePublishedParameterAndOptimizerMemory) {
  // 2205.05198 figure 1: 18 bytes of 12 L h^2 / (t p) parameters.
  const auto gib = [](const Megatron& megatron) {
    const MemoryCase c = make(megatron, Recompute::None, SequenceParallel::Off);
    return layer_state_bytes(c.model, c.layout, c.shape) / kGib;
  };
  EXPECT_NEAR(gib(k22b) / 45.5625, 1, 0.02);
  EXPECT_NEAR(gib(k530b) / 31.640625, 1, 0.02);
}

TEST(Ledger, MatchesThePublishedActivationMemory) {
  EXPECT_NEAR(activations_gib(k22b, Recompute::None, SequenceParallel::Off) / 59.25, 1, 0.02);
  EXPECT_NEAR(activations_gib(k22b, Recompute::Selective, SequenceParallel::On) / 9.5625, 1, 0.02);
  EXPECT_NEAR(
      activations_gib(k530b, Recompute::None, SequenceParallel::Off) / 114.0234375, 1, 0.02);
  EXPECT_NEAR(
      activations_gib(k530b, Recompute::Selective, SequenceParallel::On) / 23.076171875, 1, 0.02);
}

TEST(Ledger, KeepsTwoBytesOfEachLayerInputWithFullRecompute) {
  // 2 s b h L / (number of layers per checkpoint), stage 0 of 8 with 3 chunks: 1 + 7/24 of 96
  // layers.
  MemoryCase c = make(k175b, Recompute::Full, SequenceParallel::Off);
  const double expected = 2.0 * 2048 * 12288 * 96 * (1 + 7.0 / 24);
  EXPECT_NEAR(train_ledger(c.model, c.layout, c.shape, 0).activations, expected, 1);
  c.shape.recompute_every = 4;
  EXPECT_NEAR(train_ledger(c.model, c.layout, c.shape, 0).activations, expected / 4, 1);
}

TEST(Ledger, HoldsFewerMicroBatchesOnLaterStages) {
  const MemoryCase plain = make(k1t, Recompute::None, SequenceParallel::Off);
  EXPECT_DOUBLE_EQ(layers_in_flight(plain.model, plain.layout, plain.shape, 0), 128);
  EXPECT_DOUBLE_EQ(layers_in_flight(plain.model, plain.layout, plain.shape, 63), 2);
  const MemoryCase chunks = make(k530b, Recompute::None, SequenceParallel::Off);
  EXPECT_NEAR(layers_in_flight(chunks.model, chunks.layout, chunks.shape, 0), 105 + 34, 1e-9);
  MemoryCase few = plain;
  few.shape.global_batch = 3;
  EXPECT_DOUBLE_EQ(layers_in_flight(few.model, few.layout, few.shape, 0), 6);
}

TEST(Ledger, EntriesSumToTheTotal) {
  for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
    const MemoryCase c = make(k175b, recompute, SequenceParallel::On);
    const Ledger ledger = worst_train_ledger(c.model, c.layout, c.shape);
    double sum = 0;
    for (const auto& [name, bytes] : ledger.entries())
      sum += bytes;
    EXPECT_DOUBLE_EQ(sum, ledger.total());
  }
}

TEST(Ledger, ZeroShardsStatesOneAfterTheOther) {
  MemoryCase c = make(k22b, Recompute::Full, SequenceParallel::Off);
  c.layout.dp = 4;
  c.shape.global_batch = 16;
  const Ledger none = train_ledger(c.model, c.layout, c.shape, 0);
  c.layout.zero = Zero::Optimizer;
  const Ledger optimizer = train_ledger(c.model, c.layout, c.shape, 0);
  c.layout.zero = Zero::Weights;
  const Ledger weights = train_ledger(c.model, c.layout, c.shape, 0);
  EXPECT_DOUBLE_EQ(optimizer.optimizer, none.optimizer / 4);
  EXPECT_DOUBLE_EQ(optimizer.gradients, none.gradients);
  EXPECT_DOUBLE_EQ(weights.gradients, none.gradients / 4);
  EXPECT_DOUBLE_EQ(weights.weights, none.weights / 4);
}

TEST(Weights, OfAllDevicesSumToTheModel) {
  for (const char* name : {"qwen2.5-7b", "qwen3-30b-a3b", "deepseek-v3", "gpt3-175b"}) {
    const ModelSpec spec = model(name);
    const double counted = static_cast<double>(count_parameters(spec).with_mtp());
    EXPECT_NEAR(stage_parameters(spec, {}, 0).total() / counted, 1, 1e-4) << name;
    Layout layout;
    layout.pp = 8;
    double stages = 0;
    for (std::int64_t stage = 0; stage < layout.pp; ++stage)
      stages += stage_parameters(spec, layout, stage).total();
    const double second_head =
        spec.tie_embeddings ? static_cast<double>(spec.vocabulary * spec.hidden) : 0;
    EXPECT_NEAR((stages - second_head) / counted, 1, 1e-4) << name;
  }
}

TEST(Weights, OfExpertsAreSpreadByExpertParallelismAlone) {
  const ModelSpec spec = model("pangu-ultra-moe-718b");
  Layout layout;
  layout.tp = 8;
  layout.dp = 4;
  layout.ep = 32;
  layout.sequence_parallel = SequenceParallel::On;
  // 256 / 32 experts of three 7680 x 2048 matrices.
  EXPECT_DOUBLE_EQ(layer_parameters(spec, layout).experts, 8 * 3.0 * 7680 * 2048);
  EXPECT_EQ(layout.expert_dp(), 1);
}

TEST(KvCache, CountsHeadsOrTheLatent) {
  Layout tp4;
  tp4.tp = 4;
  // 28 layers x 1 of 4 heads x (128 + 128) x 2 bytes.
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model("qwen2.5-7b"), tp4), 28 * 256 * 2);
  // 61 layers x (512 + 64) x 2 bytes, whole on each device.
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model("deepseek-v3"), tp4), 61 * 576 * 2);
}

TEST(RoleStates, MoveBytesToTheHostAndLoseNoState) {
  const MemoryCase c = make(k22b, Recompute::Full, SequenceParallel::Off);
  const Ledger trainer = worst_train_ledger(c.model, c.layout, c.shape);
  const PlacedLedger offloaded = place(trainer, TrainerState::OptimizerOnHost);
  EXPECT_DOUBLE_EQ(offloaded.device.total() + offloaded.host.total(), trainer.total());
  const PlacedLedger asleep = place(trainer, TrainerState::Asleep);
  EXPECT_DOUBLE_EQ(asleep.device.total(), kFrameworkReserve);
  EXPECT_DOUBLE_EQ(asleep.host.total(), trainer.weights + trainer.optimizer);
  InferenceShape shape;
  shape.cached_tokens = 1e5;
  const Ledger engine = inference_ledger(c.model, c.layout, shape);
  EXPECT_GT(engine.kv_cache, 0);
  EXPECT_DOUBLE_EQ(place(engine, EngineState::Asleep).host.total(), engine.weights);
  EXPECT_DOUBLE_EQ(place(engine, EngineState::Discarded).host.total(), 0);
}

// Peaks measured on an H200 with PyTorch 2.11, in GB (1e9 bytes).
struct Peak {
  const char* model;
  double batch, seq;
  Recompute recompute;
  double gigabytes;
};
const std::vector<Peak>& peaks() {
  static const std::vector<Peak> rows{
      {"qwen2.5-0.5b", 4, 1024, Recompute::None, 16.4691},
      {"qwen2.5-0.5b", 4, 1024, Recompute::Full, 11.6934},
      {"qwen2.5-0.5b", 8, 2048, Recompute::None, 31.6185},
      {"qwen2.5-0.5b", 8, 2048, Recompute::Full, 12.568},
      {"qwen2.5-0.5b", 2, 8192, Recompute::None, 31.6185},
      {"qwen2.5-0.5b", 2, 8192, Recompute::Full, 12.568},
      {"qwen2.5-7b", 1, 1024, Recompute::None, 68.7719},
      {"qwen2.5-7b", 1, 1024, Recompute::Full, 63.2781},
      {"qwen2.5-7b", 2, 2048, Recompute::None, 91.2726},
      {"qwen2.5-7b", 2, 2048, Recompute::Full, 69.5339},
      {"qwen2.5-7b", 1, 8192, Recompute::None, 115.03},
      {"qwen2.5-7b", 1, 8192, Recompute::Full, 71.5562},
  };
  return rows;
}

TEST(TorchTraining, PredictsEveryMeasuredPeakWithinOnePercent) {
  for (const Peak& row : peaks()) {
    const TorchTrainingMemory memory =
        torch_training_memory(model(row.model), row.batch, row.seq, row.recompute);
    EXPECT_NEAR(memory.peak() / (row.gigabytes * 1e9), 1, 0.01)
        << row.model << " " << row.batch << " x " << row.seq << " at the " << memory.moment;
  }
}

TEST(TorchTraining, EntriesSumToThePeak) {
  const TorchTrainingMemory memory =
      torch_training_memory(model("qwen2.5-7b"), 1, 8192, Recompute::Full);
  double sum = 0;
  for (const auto& [name, bytes] : memory.entries())
    sum += bytes;
  EXPECT_DOUBLE_EQ(sum, memory.peak());
}

TEST(TorchTraining, NeverShrinksWithMoreTokens) {
  for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
    double before = 0;
    for (double seq = 256; seq <= 32768; seq *= 2) {
      const double peak = torch_training_memory(model("qwen2.5-7b"), 1, seq, recompute).peak();
      EXPECT_GT(peak, before);
      before = peak;
    }
  }
}

}  // namespace
}  // namespace temper::sim_hw
