#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "core/random.hpp"
#include "sim_hw/iteration/cluster.hpp"
#include "sim_hw/network/reshard.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

using testing::Driven;
using testing::settings_of;

SimulationSettings small() {
  SimulationSettings s = settings_of("cm384", "qwen2.5-7b");
  s.config.trainer = {.tp = 2, .pp = 2, .micro_batch_tokens = 8192};
  return s;
}

CountedScore score(std::uint64_t lease, std::size_t count, std::int64_t tokens) {
  return {.lease = LeaseId(lease),
          .lengths = std::vector<Tokens>(count, Tokens(tokens)),
          .repeated = {}};
}

TEST(Packing, FillsMicroBatchesEvenlyOverTheReplicas) {
  // 16 x 1000 tokens, 4000 to a micro-batch, over 2 replicas: 2 micro-batches of 4 each.
  const Packing p = pack(std::vector<Tokens>(16, Tokens(1000)), {.tokens = 4000, .replicas = 2});
  EXPECT_EQ(p.micro_batches, 2);
  EXPECT_EQ(p.tokens, 16000);
  EXPECT_EQ(p.busiest_tokens, 8000);
  EXPECT_EQ(p.mean_tokens(), Tokens(4000));
  EXPECT_EQ(p.mean_squares(), 4 * 1000.0 * 1000.0);
}

TEST(Packing, PutsAnOverlongSequenceIntoItsOwnMicroBatch) {
  std::vector<Tokens> lengths(8, Tokens(500));
  lengths.push_back(Tokens(9000));
  const Packing p = pack(lengths, {.tokens = 4000, .replicas = 1});
  EXPECT_EQ(p.micro_batches, 4);  // ceil(13000 / 4000), and 4000 of the short ones fit the others.
  EXPECT_EQ(p.busiest_tokens, 13000);
}

TEST(Packing, RoundsTheNumberOfMicroBatchesUp) {
  const Packing p =
      pack(std::vector<Tokens>(5, Tokens(4000)), {.tokens = 4000, .replicas = 1, .multiple = 4});
  EXPECT_EQ(p.micro_batches, 8);
}

/// Two replicas that share experts, 4000 tokens per micro-batch.
Packing dealt(std::vector<Tokens> lengths, DataBalance balance, double per_square = 0) {
  return pack(
      std::move(lengths),
      {.tokens = 4000, .replicas = 2, .balance = balance, .coupled = 2, .per_square = per_square});
}

TEST(Packing, ReplicasThatShareExpertsWaitForTheFullestOfEachRow) {
  // In order, each replica has one of each: rows (4000, 4000) and (1000, 1000).
  const std::vector<Tokens> lengths{Tokens(4000), Tokens(1000), Tokens(4000), Tokens(1000)};
  const Packing in_order = dealt(lengths, DataBalance::Arrival);
  EXPECT_EQ(in_order.micro_batches, 2);
  EXPECT_EQ(in_order.busiest_tokens, 5000);
  // With both long ones on one replica, rows (4000, 1000) twice.
  const Packing apart =
      dealt({Tokens(4000), Tokens(4000), Tokens(1000), Tokens(1000)}, DataBalance::Arrival);
  EXPECT_EQ(apart.busiest_tokens, 8000);
  // Dealt by tokens, each row has two of a kind.
  const Packing by_tokens =
      dealt({Tokens(4000), Tokens(4000), Tokens(1000), Tokens(1000)}, DataBalance::Tokens);
  EXPECT_EQ(by_tokens.busiest_tokens, 5000);
  EXPECT_EQ(dealt(lengths, DataBalance::Step).busiest_tokens, 5000);
}

TEST(Packing, RearrangesByTheCostOfAttention) {
  // Four full micro-batches: one sequence of 4000 each in two of them, eight of 500 in the others.
  std::vector<Tokens> lengths{Tokens(4000), Tokens(3999)};
  lengths.insert(lengths.end(), 16, Tokens(500));
  const double long_ones = 4000.0 * 4000 + 3999.0 * 3999;
  const Packing by_tokens = dealt(lengths, DataBalance::Tokens, 1);
  const Packing by_cost = dealt(lengths, DataBalance::Attention, 1);
  EXPECT_EQ(by_cost.micro_batches, 2);
  // The long ones in one row, the short ones in the other.
  EXPECT_EQ(by_cost.busiest_squares, 4000.0 * 4000 + 8 * 500.0 * 500);
  EXPECT_GE(by_tokens.busiest_squares, by_cost.busiest_squares);
  EXPECT_LT(by_cost.busiest_squares, long_ones);
}

TEST(Packing, DealingByCostIsNeverWorseThanByTokens) {
  Random random(5, "batches");
  double by_cost = 0, in_order = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Tokens> lengths;
    for (int i = 0; i < 64; ++i)
      lengths.emplace_back(1 + static_cast<std::int64_t>(random.below(4000)));
    const double w = random.uniform() / 1000;
    const auto cost = [&](DataBalance balance) {
      const Packing p = dealt(lengths, balance, w);
      return static_cast<double>(p.busiest_tokens) + w * p.busiest_squares;
    };
    EXPECT_LE(cost(DataBalance::Attention), cost(DataBalance::Tokens) + 1e-9);
    by_cost += cost(DataBalance::Attention);
    in_order += cost(DataBalance::Arrival);
  }
  EXPECT_LT(by_cost, in_order);
}

TEST(ExpertImbalance, ATraceIsRepeatedAndExpertsFollowIt) {
  SimulationSettings s = testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.config.experts.loads = ExpertLoadKind::Trace;
  // The 8 experts of the first device get all copies, in every version.
  s.expert_trace.assign(256, 0.0);
  std::fill(s.expert_trace.begin(), s.expert_trace.begin() + 8, 1.0 / 8);
  const auto imbalance = [&] {
    return ExpertImbalance(
        s.model, {s.config.experts, s.expert_trace}, {32, 2}, {.expert_seconds = 0.1});
  };
  ExpertImbalance original = imbalance();
  EXPECT_DOUBLE_EQ(original.at(PolicyVersion(3), 10).imbalance, 32);
  s.config.experts.placement = ExpertPlacing::Predicted;
  ExpertImbalance predicted = imbalance();
  EXPECT_DOUBLE_EQ(predicted.at(PolicyVersion(0), 10).imbalance, 32);
  const sim_hw::MigrationOutcome second = predicted.at(PolicyVersion(1), 10);
  EXPECT_DOUBLE_EQ(second.imbalance, 4);  // One busy expert on each of 8 devices.
  EXPECT_EQ(second.migrations, 1);
  EXPECT_EQ(second.prediction_error, 0);
  EXPECT_GT(second.seconds, 0);
  EXPECT_EQ(predicted.at(PolicyVersion(2), 10).seconds, 0);
  // Asked in another order or from a later version, the same.
  ExpertImbalance resumed = imbalance();
  EXPECT_EQ(resumed.at(PolicyVersion(2), 10).imbalance, 4);
  EXPECT_EQ(resumed.at(PolicyVersion(1), 10).seconds, second.seconds);
  EXPECT_DOUBLE_EQ(reference_imbalance(s, reference_layout(s)), 1);  // ep 1: nothing is shared.
}

TEST(Reference, MatchesTheModelForOneSequencePerMicroBatch) {
  const SimulationSettings s = small();
  const sim_hw::Layout layout = reference_layout(s);
  EXPECT_EQ(layout.dp, 4);  // 16 devices / (tp 2 x pp 2).
  // 8 sequences of 8192 tokens fill 2 micro-batches of each of the 4 replicas.
  const double expected =
      sim_hw::forward_iteration_seconds(served_model(s),
                                        sim_hw::make_device(s.cluster),
                                        sim_hw::make_fabric(s.cluster),
                                        layout,
                                        packed_shape(s, layout, 2, Tokens(8192)));
  EXPECT_NEAR(
      ReferenceModel(s).seconds(std::vector<Tokens>(8, Tokens(8192))), expected, 1e-9 * expected);
}

TEST(Reference, PackedShortSequencesCostLessThanOneLongSequence) {
  const ReferenceModel model(small());
  const double packed = model.seconds(std::vector<Tokens>(64, Tokens(1024)));
  const double whole = model.seconds(std::vector<Tokens>(8, Tokens(8192)));
  EXPECT_LT(packed, whole);
  EXPECT_GT(packed, 0.5 * whole);  // Only attention is cheaper.
}

TEST(SimulatedReference, BecomesReadyWhenItsWeightsAreLoaded) {
  const SimulationSettings s = small();
  SimulatedReference reference(s);
  Driven d(reference);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.run());
  const auto ready = d.all<Ready>();
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].first,
            Time(from_seconds(load_seconds(sim_hw::make_fabric(s.cluster), reference_memory(s)))));
  EXPECT_TRUE(d.spans().empty());
}

TEST(SimulatedReference, ScoresAllWaitingLeasesInOnePass) {
  const SimulationSettings s = small();
  const ReferenceModel model(s);
  SimulatedReference reference(s);
  Driven d(reference);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.run());
  const Time begin = d.now();
  // The first begins alone; meanwhile three wait.
  ASSERT_TRUE(d.send(score(1, 4, 8192)));
  ASSERT_TRUE(d.send(score(2, 4, 8192)));
  ASSERT_TRUE(d.send(score(3, 4, 8192)));
  ASSERT_TRUE(d.send(score(4, 4, 8192)));
  ASSERT_TRUE(d.run());
  const auto scored = d.all<CountedScored>();
  ASSERT_EQ(scored.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(scored[i].second.lease, LeaseId(i + 1));
  const Duration half = from_seconds(model.seconds(std::vector<Tokens>(4, Tokens(8192))));
  const Duration rest = from_seconds(model.seconds(std::vector<Tokens>(12, Tokens(8192))));
  EXPECT_EQ(scored[0].first, begin + half);
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_EQ(scored[i].first, begin + half + rest);
  Duration busy{};
  for (const Span& span : d.spans()) {
    EXPECT_EQ(span.state, CardState::Reference);
    busy += span.end - span.begin;
  }
  EXPECT_EQ(busy, half + rest);
}

TEST(SimulatedReference, MovesToAndFromTimeSharedCards) {
  SimulationSettings s = small();
  s.colocated = true;
  SimulatedReference reference(s);
  Driven d(reference);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.run());
  EXPECT_EQ(d.all<Ready>()[0].first, Time{}) << "the reference weights are in host memory";
  EXPECT_FALSE(d.send(score(1, 4, 8192))) << "asked too early";

  const Bytes weights = bytes_on(s, s.cards, reference_memory(s).device.weights);
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  ASSERT_TRUE(d.send(Switch{SwitchAction::OnloadReference}));
  ASSERT_TRUE(d.run());
  ASSERT_TRUE(d.send(score(1, 4, 8192)));
  ASSERT_TRUE(d.run());
  ASSERT_TRUE(d.send(Switch{SwitchAction::OffloadReference}));
  ASSERT_TRUE(d.send(Switch{SwitchAction::FreeKv}));
  ASSERT_TRUE(d.run());
  const auto done = d.all<Switched>();
  ASSERT_EQ(done.size(), 3U);
  const SwitchCost& onload = done[0].second.cost;
  EXPECT_EQ(onload.device_before, Bytes(0));
  EXPECT_EQ(onload.device_after, weights);
  EXPECT_EQ(onload.host_before, weights);
  EXPECT_EQ(onload.duration,
            from_seconds(sim_hw::to_device_seconds(fabric, reference_memory(s).device.weights)));
  EXPECT_EQ(done[1].second.error, "a reference actor does not support free_kv")
      << "refused at once";
  EXPECT_EQ(done[2].second.cost.device_after, Bytes(0));
  EXPECT_EQ(d.all<CountedScored>().size(), 1U);
}

TEST(SimulatedReference, UsesFewerStagesOnFewerCards) {
  SimulationSettings s = small();
  s.config.trainer.pp = 4;
  s.cards = 2;  // 4 devices: tp 2, so 2 stages are left.
  const sim_hw::Layout layout = reference_layout(s);
  EXPECT_EQ(layout.tp, 2);
  EXPECT_EQ(layout.pp, 2);
  EXPECT_EQ(layout.dp, 1);
  EXPECT_TRUE(check_reference(s));
}

TEST(Costs, LedgersSumToTheirParts) {
  const SimulationSettings s = small();
  for (const ActorMemory& m : {rollout_memory(s), trainer_memory(s), reference_memory(s)}) {
    double sum = 0;
    for (const auto& [name, bytes] : m.device.entries())
      sum += bytes;
    EXPECT_DOUBLE_EQ(sum, m.device.total());
  }
}

TEST(Costs, CacheIsAShareOfTheRemainingMemoryInWholeBlocks) {
  const SimulationSettings s = small();
  const ActorMemory m = rollout_memory(s);
  const double room = s.config.rollout.kv_share * (device_capacity(s) - m.device.weights);
  const double block = m.device.kv_cache / static_cast<double>(kv_tokens(s).count() / 128);
  EXPECT_EQ(kv_tokens(s).count() % 128, 0);
  EXPECT_LE(m.device.kv_cache, room);
  EXPECT_GT(m.device.kv_cache + block, room);
}

TEST(Costs, KvSlotsCountResponsesOfTheMeanContextOfRunningOnes) {
  SimulationSettings s = small();
  s.config.rollout.tp = 2;
  s.config.prompt.kind = s.config.response.kind = LengthKind::Constant;
  s.config.prompt.mean = 1000;
  s.config.response.mean = 4000;    // on average half of it is there
  const std::int64_t replicas = 8;  // 16 devices / tp
  EXPECT_EQ(kv_slots(s), replicas * kv_tokens(s).count() / 3000);
  s.config.response.kind = LengthKind::Lognormal;  // long ones run for longer
  EXPECT_LT(kv_slots(s), replicas * kv_tokens(s).count() / 3500);
}

TEST(Costs, PublicationIsBoundedByThePortOfADevice) {
  SimulationSettings s = small();
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const double bytes = rollout_memory(s).device.weights;
  const double port = fabric.levels[fabric.node_levels - 1].seconds_per_byte;
  const double separate = publish_seconds(fabric, s);
  EXPECT_GT(separate, bytes * port);
  EXPECT_LT(separate, 20 * bytes * port);
  EXPECT_GT(swap_seconds(fabric, s), bytes * fabric.to_device);
  s.colocated = true;  // Part of the weights is already where it belongs, and none goes to a host.
  EXPECT_LT(publish_seconds(fabric, s), separate);
  EXPECT_LT(swap_seconds(fabric, s), 0.1);
}

TEST(SimulatedReference, ReportsItsUsageWhenItStops) {
  const SimulationSettings s = small();
  SimulatedReference reference(s);
  Driven d(reference);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.run());
  ASSERT_TRUE(d.send(score(1, 4, 8192)));
  ASSERT_TRUE(d.run());
  ASSERT_TRUE(d.send(score(2, 4, 2048)));
  ASSERT_TRUE(d.run());
  ASSERT_TRUE(d.send(Stop{}));
  const auto activity = d.all<Activity>();
  ASSERT_TRUE(activity.back().second.usage);
  const Usage& usage = *activity.back().second.usage;
  const ReferenceModel model(s);
  const ReferencePass first = model.pass(std::vector<Tokens>(4, Tokens(8192)));
  const ReferencePass second = model.pass(std::vector<Tokens>(4, Tokens(2048)));
  // Forward: 2 per parameter and token, and per pair of tokens, of 4 sequences each.
  const sim_hw::ModelFlops flops(served_model(s));
  EXPECT_DOUBLE_EQ(first.flops, 4 * flops.forward({8192, 8192.0 * 8192, 8192}));
  EXPECT_DOUBLE_EQ(usage.flops.count(), first.flops + second.flops);
  double sent = 0;
  for (const PlaneUse& plane : usage.planes)
    sent += plane.plane.ends_with("host") ? 0 : static_cast<double>(plane.bytes.count());
  EXPECT_NEAR(sent, first.sent.total() + second.sent.total(), 8);
  EXPECT_NEAR(static_cast<double>(usage.device.peak.count()), first.memory.device.total(), 1);
  EXPECT_LT(second.memory.device.total(), first.memory.device.total());
  EXPECT_LE(usage.device.peak, usage.device.predicted);
}

TEST(UsageMeter, LimitsTheReportRateAndSumsExactly) {
  UsageMeter meter(small(), 8);
  for (int i = 0; i < 1000; ++i)
    meter.add_to_host(0.25);
  EXPECT_FALSE(meter.due(Time(UsageMeter::kEvery) - Duration(1)));
  const auto usage = meter.due(Time(UsageMeter::kEvery));
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->planes.at(usage->planes.size() - 2).plane, "to host");
  EXPECT_EQ(usage->planes.at(usage->planes.size() - 2).bytes, Bytes(250));
  EXPECT_EQ(usage->devices, 16);
  EXPECT_FALSE(meter.due(Time(UsageMeter::kEvery) + Duration(1)));
}

TEST(Costs, EnginesReceiveAllPublishedBytes) {
  SimulationSettings s = small();
  s.cards = 4;  // Two engines on 8 cards.
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const WeightPublication one = publish_weights(fabric, s);
  const sim_hw::Layout from = trainer_layout(s);
  const sim_hw::RolloutLayout to = rollout_layout(s);
  const auto replicas = static_cast<std::int64_t>(to.dp) * 2;
  const sim_hw::ShardLayout engines{
      static_cast<std::int64_t>(to.tp), 1, replicas, static_cast<std::int64_t>(to.ep), 0};
  const sim_hw::ReshardTraffic traffic =
      sim_hw::reshard_traffic(fabric,
                              sim_hw::weight_volume(served_model(s), 2),
                              {from.tp, from.pp, from.dp, from.ep, engines.devices()},
                              engines);
  EXPECT_GT(traffic.moved, 0);
  EXPECT_NEAR(2 * one.received.total(), traffic.moved, 1e-9 * traffic.moved);
}

}  // namespace
}  // namespace temper::actors
