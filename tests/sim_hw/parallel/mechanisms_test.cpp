// The mechanisms of MoE training systems, each against hand-computed values.
#include "core/random.hpp"
#include "sim_hw/layout/stages.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/host_dispatch.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/parallel/train_traffic.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/steps/steps.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace temper::sim_hw {
namespace {

class Mechanism : public testing::Test {
 protected:
  Mechanism() {
    layout_.tp = 8;
    layout_.pp = 16;
    layout_.vpp = 2;
    layout_.ep = 32;
    layout_.dp = 4;
    layout_.zero = Zero::Optimizer;
    layout_.sequence_parallel = SequenceParallel::On;
    shape_.micro_batch = 1;
    shape_.global_batch = 256;
    shape_.seq = 8192;
  }
  TrainTime time() const {
    const Status status = check_layout(model_, layout_.devices(), layout_, shape_);
    EXPECT_TRUE(status) << (status ? "" : status.error().context);
    return train_iteration_time(model_, device_, fabric_, layout_, shape_);
  }
  StepInputs in() const { return {model_, device_, fabric_, layout_, shape_}; }

  Catalog catalog_ = Catalog::shipped();
  const ModelSpec& model_ = **catalog_.model("pangu-ultra-moe-718b");
  const HardwareSpec& hardware_ = **catalog_.hardware("ascend-910b");
  const Device device_ = make_device(hardware_);
  const Fabric fabric_ = make_fabric(hardware_);
  Layout layout_;
  TrainShape shape_;
};

TEST(DistinctDevices, AreCountedWithoutReplacement) {
  // 2 of 4 experts on 2 devices: of 6 pairs 2 lie on one device and 4 on two.
  EXPECT_DOUBLE_EQ(distinct_devices(2, 4, 2), (2 * 1 + 4 * 2) / 6.0);
  EXPECT_DOUBLE_EQ(distinct_devices(8, 8, 3), 3);
  EXPECT_DOUBLE_EQ(distinct_devices(1, 8, 3), 1);
}

TEST(GatheredExchange, SendsEveryTokenToEveryNodeAndTheCopiesInside) {
  const Fabric fabric = make_fabric(**Catalog::shipped().hardware("ascend-910b"));
  const MoeTraffic traffic{1000, 8, 2 * 7680};
  const double token = 1000 * 2 * 7680;
  // 32 devices in 4 nodes of 8. Flat: 24 of 32 copies cross, 7 of 32 stay in the node.
  const LevelBytes flat = moe_traffic(fabric, {32, 1}, traffic, AllToAll::Flat);
  EXPECT_DOUBLE_EQ(flat.at[1], 8 * token * 24 / 32);
  EXPECT_DOUBLE_EQ(flat.at[0], 8 * token * 7 / 32);
  // Gathered: to 3 other nodes; inside, 7 of 8 copies leave their device.
  const LevelBytes gathered = moe_traffic(fabric, {32, 1}, traffic, AllToAll::Gathered);
  EXPECT_DOUBLE_EQ(gathered.at[1], 3 * token);
  EXPECT_DOUBLE_EQ(gathered.at[0], 8 * token * 7 / 8);
  // One after the other: two start-ups, a step between nodes, and both ports at 39 % of the link.
  EXPECT_NEAR(moe_dispatch_seconds(fabric, {32, 1}, traffic, AllToAll::Gathered),
              2 * 39e-6 + 10e-6 + 1.5e-6 + (3 * token / 25e9 + 7 * token / 196e9) / 0.39,
              1e-9);
  // Inside one node nothing is gathered.
  EXPECT_DOUBLE_EQ(moe_dispatch_seconds(fabric, {8, 1}, traffic, AllToAll::Gathered),
                   moe_dispatch_seconds(fabric, {8, 1}, traffic, AllToAll::Flat));
}

TEST_F(Mechanism, AnExpertPathIsUsedAsRequestedAndAutoIsTheFasterOne) {
  const auto seconds = [&](ExpertPath path) {
    shape_.mechanisms.expert_path = path;
    return expert_exchange(in()).seconds;
  };
  const double flat = seconds(ExpertPath::Flat);
  const double by_node = seconds(ExpertPath::Hierarchical);
  EXPECT_LT(by_node, flat);
  EXPECT_DOUBLE_EQ(seconds(ExpertPath::Fastest), by_node);
  EXPECT_LT(by_node, seconds(ExpertPath::Gathered));
}

TEST_F(Mechanism, OneCopyPerDeviceSendsTheExpectedDistinctDevices) {
  shape_.mechanisms.expert_path = ExpertPath::Flat;
  const LevelBytes all = train_traffic(model_, device_, fabric_, layout_, shape_).expert;
  shape_.mechanisms.token_copies = TokenCopies::PerDevice;
  const LevelBytes once = train_traffic(model_, device_, fabric_, layout_, shape_).expert;
  // 8 experts on each of 32 devices: 32 (1 - C(248, 8) / C(256, 8)) = 7.27 of 8 copies.
  double none = 1;
  for (int i = 0; i < 8; ++i)
    none *= (248.0 - i) / (256.0 - i);
  EXPECT_NEAR(once.total() / all.total(), 32 * (1 - none) / 8, 1e-12);
  EXPECT_NEAR(32 * (1 - none), 7.27, 0.01);
}

TEST_F(Mechanism, AdaptivePipeHidesExpertCommunicationExceptFillAndDrain) {
  const TrainTime plain = time();
  shape_.mechanisms.schedule = PipelineSchedule::AdaptivePipe;
  const TrainTime adaptive = time();
  EXPECT_LT(adaptive.total(), plain.total());
  // Exposed and hidden time of the slowest stage add up to the exposed time before.
  EXPECT_NEAR(
      (adaptive.stage.expert_parallel + adaptive.hidden) / plain.stage.expert_parallel, 1, 1e-9);
  EXPECT_NEAR(adaptive.bubble / plain.bubble, 1, 1e-9);  // Where no pass overlaps another.
  // 17 of 2 x 64 chunks of the last stage run alone.
  EXPECT_NEAR(adaptive.hidden / plain.stage.expert_parallel, 1 - 17.0 / 128, 1e-9);
}

TEST_F(Mechanism, DualPipeHasTwoCopiesOfTheWeightsAndAdaptivePipeOne) {
  const Ledger plain = train_ledger(model_, layout_, shape_, 7);
  shape_.mechanisms.schedule = PipelineSchedule::AdaptivePipe;
  const Ledger adaptive = train_ledger(model_, layout_, shape_, 7);
  EXPECT_DOUBLE_EQ(adaptive.weights, plain.weights);
  // One chunk of half a stage more than 2 (16 - 8) + 16 + 1 = 33.
  EXPECT_DOUBLE_EQ(adaptive.activations / plain.activations, 34.0 / 33);
  layout_.vpp = 1;
  shape_.mechanisms.schedule = PipelineSchedule::DualPipe;
  const Ledger dual = train_ledger(model_, layout_, shape_, 7);
  EXPECT_DOUBLE_EQ(dual.weights, 2 * plain.weights);
  EXPECT_DOUBLE_EQ(dual.gradients, 2 * plain.gradients);
  EXPECT_DOUBLE_EQ(dual.optimizer, plain.optimizer);  // Sharded over twice the replicas.
}

TEST_F(Mechanism, CountedLayersLeaveRoomForHeadsAndModules) {
  const auto layers = [&](std::int64_t stage) { return stage_layers(model_, layout_, stage); };
  EXPECT_EQ(layers(0), 4);
  EXPECT_EQ(layers(15), 1);
  layout_.layer_balance = LayerBalance::Even;
  EXPECT_EQ(layers(12), 4);
  EXPECT_EQ(layers(13), 3);
  EXPECT_EQ(layers(15), 3);
  const double even = time().total();
  layout_.layer_balance = LayerBalance::Counted;
  // A head is worth 1.8 layers: 14 stages of 4, then 3 and a head, then 2, a module and its head.
  EXPECT_EQ(layers(13), 4);
  EXPECT_EQ(layers(14), 3);
  EXPECT_EQ(layers(15), 2);
  EXPECT_EQ(stage_modules(model_, layout_, 14).heads, 1);
  EXPECT_EQ(stage_modules(model_, layout_, 15).heads, 1);
  EXPECT_EQ(stage_modules(model_, layout_, 15).mtp, 1);
  EXPECT_LT(time().total(), even);
}

TEST_F(Mechanism, CountedLayersSumToTheModelForEveryPipeline) {
  layout_.layer_balance = LayerBalance::Counted;
  for (layout_.pp = 1; layout_.pp <= model_.layers; ++layout_.pp) {
    for (layout_.vpp = 1; layout_.vpp <= 2; ++layout_.vpp) {
      std::int64_t sum = 0, heads = 0;
      for (std::int64_t stage = 0; stage < layout_.pp; ++stage) {
        const std::int64_t layers = stage_layers(model_, layout_, stage);
        ASSERT_GE(layers, stage + 2 < layout_.pp ? 1 : 0) << layout_.pp << " " << stage;
        ASSERT_EQ(layers_before(model_, layout_, stage), sum);
        sum += layers;
        heads += stage_modules(model_, layout_, stage).heads;
      }
      ASSERT_EQ(sum, model_.layers);
      ASSERT_EQ(heads, 2);
    }
  }
}

TEST_F(Mechanism, AHostThatLaunchesBoundsALayerByItsLaunches) {
  shape_.seq = 128;  // Few enough tokens for launches to dominate.
  const auto total = [&](HostDispatch dispatch) {
    shape_.mechanisms.host_dispatch = dispatch;
    return layer_cost(in(), LayerKind::Experts).time.total();
  };
  // 20 + 40 kernels, 40 + 80 of routing and 3 + 3 of communication, forward and backward, 30 us
  // each; no less.
  const double launches = (kForwardKernels + kBackwardKernels + 3 * kRoutingKernels + 6) * 30e-6;
  ASSERT_LT(total(HostDispatch::Ahead), launches);
  EXPECT_NEAR(total(HostDispatch::Tuned), launches, 1e-9);
  EXPECT_NEAR(total(HostDispatch::Eager), launches * kUnboundLaunch, 1e-9);
  shape_.seq = 65536;
  for (const auto dispatch : {HostDispatch::Eager, HostDispatch::Tuned})
    EXPECT_EQ(total(dispatch), total(HostDispatch::Ahead));
}

TEST_F(Mechanism, EachFetchOfCountsStallsTheDevice) {
  const auto host = [&](SplitCounts counts) {
    shape_.mechanisms.split_counts = counts;
    return layer_cost(in(), LayerKind::Experts).time.host;
  };
  // A copy of 9.6 us and a launch of 30 us.
  EXPECT_EQ(host(SplitCounts::Known), 0);
  EXPECT_NEAR(host(SplitCounts::FetchedOnce), 39.6e-6, 1e-12);
  EXPECT_NEAR(host(SplitCounts::FetchedEach), 4 * 39.6e-6, 1e-12);
}

TEST_F(Mechanism, ABalanceLossOverTheExpertGroupSumsOverFewerDevices) {
  const auto shown = [&](BalanceLoss loss) {
    shape_.mechanisms.balance_loss = loss;
    return layer_cost(in(), LayerKind::Experts).time.expert_parallel;
  };
  const double none = shown(BalanceLoss::MicroBatch);
  const double group = shown(BalanceLoss::ExpertGroup);
  layout_.dp = 48;  // 384 devices of a stage.
  const double everywhere = shown(BalanceLoss::Everywhere);
  EXPECT_NEAR(group - none, all_reduce_seconds(fabric_, {32, 1}, 4 * 256), 1e-12);
  EXPECT_NEAR(everywhere - none, all_reduce_seconds(fabric_, {384, 1}, 4 * 256), 1e-12);
  EXPECT_GT(everywhere, group);
}

TEST_F(Mechanism, PlainKernelsAreSlowerByTheirSeparateGains) {
  const LayerCost fused = layer_cost(in(), LayerKind::Experts);
  const Device plain = plain_kernels(device_);
  const LayerCost slow = layer_cost({model_, plain, fabric_, layout_, shape_}, LayerKind::Experts);
  EXPECT_NEAR(slow.time.elementwise / fused.time.elementwise, 3, 1e-9);
  // Most of a long attention is products and exponentials, of a large GEMM products.
  EXPECT_NEAR(slow.time.attention / fused.time.attention, (1.5 + 1.3 * 2.5) / 3.5, 0.05);
  EXPECT_NEAR(slow.time.matmul / fused.time.matmul, 1.1, 0.02);
  shape_.mechanisms.operators = OperatorKernels::Plain;
  const double by_switch = time().total();
  shape_.mechanisms = {};
  EXPECT_DOUBLE_EQ(by_switch,
                   train_iteration_time(model_, plain, fabric_, layout_, shape_).total());
}

TEST_F(Mechanism, LongSequencesOfOneReplicaMakeAllWait) {
  const double attention = layer_cost(in(), LayerKind::Experts).time.attention;
  shape_.attention_imbalance = 1.25;
  EXPECT_NEAR(layer_cost(in(), LayerKind::Experts).time.data_wait, 0.25 * attention, 1e-12);
}

TEST_F(Mechanism, AChosenPlanFitsAndKeepsExpensiveTensors) {
  shape_.micro_batch = 2;
  const MemoryLimits limits = memory_limits(hardware_);
  ASSERT_GT(worst_train_ledger(model_, layout_, shape_).total(), limits.device);
  const std::optional<ActivationPlan> plan = choose_activations(in(), limits);
  ASSERT_TRUE(plan);
  shape_.activations = *plan;
  EXPECT_LE(worst_train_ledger(model_, layout_, shape_).total(), limits.device);
  EXPECT_LE(swapped_bytes(in()), limits.host);
  const double chosen = time().total();
  shape_.activations = {};
  shape_.recompute = Recompute::Full;
  EXPECT_LT(chosen, time().total());
}

TEST_F(Mechanism, AnActivationPolicyUsesOnlyItsMethods) {
  const MemoryLimits limits = memory_limits(hardware_);
  const auto seconds = [&](ActivationPolicy policy) {
    shape_ = with_activations(in(), limits, policy);
    if (policy != ActivationPolicy::Full) {
      EXPECT_LE(worst_train_ledger(model_, layout_, shape_).total(), limits.device);
    }
    return time().total();
  };
  const double full = seconds(ActivationPolicy::Full);
  EXPECT_EQ(shape_.recompute, Recompute::Full);
  const double selective = seconds(ActivationPolicy::Selective);
  EXPECT_NE(shape_.activations.experts.recomputed, 0U);
  EXPECT_EQ(shape_.activations.experts.swapped | shape_.activations.dense.swapped, 0U);
  const double swap = seconds(ActivationPolicy::Swap);
  EXPECT_NE(shape_.activations.experts.swapped, 0U);
  EXPECT_EQ(shape_.activations.experts.recomputed | shape_.activations.dense.recomputed, 0U);
  EXPECT_LT(selective, full);
  EXPECT_LE(seconds(ActivationPolicy::Auto), std::min(selective, swap));
}

TEST_F(Mechanism, APolicyThatCannotFitDropsNothing) {
  MemoryLimits little = memory_limits(hardware_);
  little.device = worst_train_ledger(model_, layout_, shape_).weights;
  shape_ = with_activations(in(), little, ActivationPolicy::Selective);
  EXPECT_EQ(shape_.recompute, Recompute::None);
  EXPECT_EQ(shape_.activations, ActivationPlan{});
  shape_ = with_activations(in(), little, ActivationPolicy::Auto);
  EXPECT_EQ(shape_.recompute, Recompute::Full);
}

TEST_F(Mechanism, AttentionRunsTwiceWhereItIsRecomputed) {
  EXPECT_EQ(attention_passes(in()), 1);
  const SavedTensors saved = saved_tensors(model_, shape_, LayerKind::Experts);
  for (std::size_t i = 0; i < saved.all().size(); ++i) {
    if (saved.all()[i].recompute_operator == RecomputeOperator::Attention)
      shape_.activations.experts.recomputed |= std::uint32_t{1} << i;
  }
  // 58 of the 61 layers have experts.
  EXPECT_DOUBLE_EQ(attention_passes(in()), 1 + 58.0 / 61);
  shape_.recompute = Recompute::Full;
  EXPECT_EQ(attention_passes(in()), 2);
}

TEST_F(Mechanism, DroppedBytesLeaveTheActivations) {
  const double all = train_ledger(model_, layout_, shape_, 5).activations;
  shape_.activations.experts = {.recomputed = 1U << 1, .swapped = 1U << 3};
  const double layer = saved_bytes(in(), LayerKind::Experts, (1U << 1) | (1U << 3));
  const double in_flight = layers_in_flight(model_, layout_, shape_, 5);
  const Ledger dropped = train_ledger(model_, layout_, shape_, 5);
  EXPECT_NEAR((all - dropped.activations) / (in_flight * layer), 1, 1e-9);
  // One layer of both, and the next layer's swapped tensor.
  EXPECT_NEAR(
      dropped.recompute_working_set, layer + saved_bytes(in(), LayerKind::Experts, 1U << 3), 1);
}

TEST_F(Mechanism, ASwapCostsNothingWhileTheLinkKeepsUp) {
  // The attention norm's output: 2 x 8192 x 7680 / 8 bytes, 0.6 ms at 27.6 GB/s.
  shape_.activations.experts.swapped = 1U << 1;
  EXPECT_NEAR(saved_bytes(in(), LayerKind::Experts, 1U << 1), 2 * 8192 * 7680 / 8.0, 1);
  EXPECT_EQ(layer_cost(in(), LayerKind::Experts).time.swap, 0);
  Fabric slow = fabric_;
  slow.from_device *= 1000;
  const StepInputs with_slow_link{model_, device_, slow, layout_, shape_};
  EXPECT_GT(layer_cost(with_slow_link, LayerKind::Experts).time.swap, 0.1);
}

TEST_F(Mechanism, SchedulesNameTheirRequirements) {
  const auto refusal = [&]() {
    const Status status = check_layout(model_, layout_.devices(), layout_, shape_);
    return status ? std::string() : status.error().context;
  };
  shape_.mechanisms.schedule = PipelineSchedule::DualPipe;
  EXPECT_NE(refusal().find("nearest: pp = 16, vpp = 1"), std::string::npos) << refusal();
  layout_.vpp = 1;
  EXPECT_EQ(refusal(), "");
  shape_.global_batch = 4 * 20;
  EXPECT_NE(refusal().find("nearest: batch = 128 (32 micro-batches)"), std::string::npos)
      << refusal();
  shape_.mechanisms.schedule = PipelineSchedule::AdaptivePipe;
  EXPECT_NE(refusal().find("nearest: vpp = 2, pp = 16"), std::string::npos) << refusal();
}

template <NamedEnum E>
E any(Random& rng) {
  const auto& all = EnumNames<E>::value;
  return all[rng.below(all.size())].first;
}

TEST_F(Mechanism, EveryCombinationHasConsistentPartsAndAWorstDevice) {
  Random rng(11, "mechanisms");
  const auto power = [&rng](std::uint64_t most) { return std::int64_t{1} << rng.below(most + 1); };
  int accepted = 0, overlapped = 0;
  for (int i = 0; i < 20000; ++i) {
    const ModelSpec& spec = i % 2 == 0 ? model_ : **catalog_.model("qwen3-30b-a3b");
    Layout layout;
    layout.tp = power(3);
    layout.pp = power(4);
    layout.vpp = power(1);
    layout.ep = power(5);
    layout.dp = power(5);
    layout.zero = static_cast<Zero>(rng.below(4));
    layout.sequence_parallel = SequenceParallel::On;
    layout.layer_balance = any<LayerBalance>(rng);
    TrainShape shape;
    shape.global_batch = power(10);
    shape.seq = 512 * power(4);
    shape.recompute = any<Recompute>(rng);
    shape.activations.experts = {static_cast<std::uint32_t>(rng.below(16)), 1U << 5};
    shape.mechanisms = {any<ExpertPath>(rng),
                        any<TokenCopies>(rng),
                        any<PipelineSchedule>(rng),
                        any<OperatorKernels>(rng),
                        any<HostDispatch>(rng),
                        any<SplitCounts>(rng),
                        any<BalanceLoss>(rng)};
    if (!check_layout(spec, layout.devices(), layout, shape))
      continue;
    ++accepted;
    overlapped += shape.mechanisms.schedule == PipelineSchedule::OneForwardOneBackward ? 0 : 1;
    const TrainTime t = train_iteration_time(spec, device_, fabric_, layout, shape);
    double sum = 0;
    for (const auto& [name, seconds] : t.entries()) {
      ASSERT_GE(seconds, 0) << name;
      sum += seconds;
    }
    ASSERT_NEAR(sum / t.total(), 1, 1e-9);
    ASSERT_GE(t.hidden, 0);
    const Ledger worst = worst_train_ledger(spec, layout, shape);
    for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
      ASSERT_LE(train_ledger(spec, layout, shape, stage).total(), worst.total() * (1 + 1e-12))
          << "stage " << stage << " of " << layout.pp << " x " << layout.vpp << ", "
          << temper::name_of(layout.layer_balance) << ", "
          << temper::name_of(shape.mechanisms.schedule);
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(overlapped, 300);
}

TEST(MechanismQuestions, SetEverySwitchByItsName) {
  Catalog catalog = Catalog::shipped();
  const auto ask = [&](std::string_view rest) {
    Result<Params> params = Params::parse(
        "model=pangu-ultra-moe-718b;tp=8;pp=16;vpp=2;ep=32;batch=1536;mbs=2;seq=8192;zero=1;"
        "memory=report;" +
        std::string(rest.find("recompute") == rest.npos ? "recompute=full;" : "") +
        std::string(rest));
    EXPECT_TRUE(params);
    return cost_of({catalog, {}}, {"ascend-910b", 6144, "train_iteration", *std::move(params)});
  };
  const auto time = [&](std::string_view rest) {
    const Result<Cost> answer = ask(rest);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().context);
    return answer ? answer->find("time")->value : 0;
  };
  const double plain = time("");
  EXPECT_LT(time("schedule=adaptive"), plain);
  EXPECT_LT(time("expert_path=flat;token_copies=per_device"), time("expert_path=flat"));
  EXPECT_LT(time("layer_balance=counted"), time("layer_balance=even"));
  for (const char* slower : {"expert_path=flat",
                             "expert_path=gathered",
                             "operators=plain",
                             "split_counts=fetched_once",
                             "balance_loss=everywhere",
                             "attention_imbalance=1.2"})
    EXPECT_GT(time(slower), plain) << slower;
  const Result<Cost> kept = ask("recompute=none");
  const Result<Cost> chosen = ask("recompute=none;activations=chosen");
  ASSERT_TRUE(kept && chosen);
  EXPECT_LT(chosen->find("peak_memory")->value, 64e9);
  EXPECT_GT(kept->find("peak_memory")->value, 64e9);
  EXPECT_NE(chosen->find("swapped_activations"), nullptr);
  EXPECT_FALSE(ask("activations=chosen"));  // Full recompute leaves nothing to choose.
  const Result<Cost> wrong = ask("schedule=zigzag");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().context.find("schedule=zigzag: expected one of 1f1b, dualpipe, adaptive"),
            std::string::npos);
}

}  // namespace
}  // namespace temper::sim_hw
