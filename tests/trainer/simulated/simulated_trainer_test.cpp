#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/model/parameters.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/parallel/train_traffic.hpp"
#include "tests/trainer/simulated/waiting_trainer.hpp"
#include "trainer/simulated/trainer_actor.hpp"

#include <gtest/gtest.h>

#include <map>

namespace temper::trainer {
namespace {

using actors::CountedTrain;
using actors::testing::Driven;
using actors::testing::settings_of;

actors::SimulationSettings small() {
  actors::SimulationSettings s = settings_of("cm384", "qwen2.5-7b");
  s.config.trainer = {.tp = 2, .pp = 2, .micro_batch_tokens = 8192};
  s.config.response.kind = actors::LengthKind::Constant;
  s.config.response.mean = 4096;
  return s;
}

class Trainer : public ::testing::Test {
 protected:
  explicit Trainer(actors::SimulationSettings s = small())
      : settings_(std::move(s)), trainer_(settings_, PolicyVersion(5)), d_(trainer_) {
    EXPECT_TRUE(d_.start());
    EXPECT_TRUE(d_.run());
  }

  actors::SimulationSettings settings_;
  SimulatedTrainer trainer_;
  Driven d_;
};

TEST(UpdateCost, SequencesThatFillAMicroBatchCostWhatTheModelSays) {
  const actors::SimulationSettings s = small();
  const sim_hw::Layout layout = actors::trainer_layout(s);
  // 32 sequences of 8192 over dp = 4: 8 micro-batches of one each.
  const sim_hw::TrainTime expected =
      sim_hw::train_iteration_time(actors::trained_model(s),
                                   sim_hw::make_device(s.cluster),
                                   sim_hw::make_fabric(s.cluster),
                                   layout,
                                   actors::packed_shape(s, layout, 8, Tokens(8192)));
  const UpdateCost cost = UpdateModel(s)(std::vector<Tokens>(32, Tokens(8192)));
  EXPECT_EQ(cost.micro_batches, 32);
  EXPECT_NEAR(cost.attention_correction, 0, 1e-9 * expected.total());
  EXPECT_NEAR(cost.total() - cost.host_transfer, expected.total(), 1e-9 * expected.total());
}

TEST(UpdateCost, IsThatOfTheConfiguredMechanisms) {
  actors::SimulationSettings s = small();
  const std::vector<Tokens> batch(32, Tokens(8192));
  const double fused = UpdateModel(s)(batch).total();
  s.config.trainer.mechanisms.operators = sim_hw::OperatorKernels::Plain;
  const sim_hw::Layout layout = actors::trainer_layout(s);
  const sim_hw::TrainTime expected =
      sim_hw::train_iteration_time(actors::trained_model(s),
                                   sim_hw::make_device(s.cluster),
                                   sim_hw::make_fabric(s.cluster),
                                   layout,
                                   actors::training_shape(s, layout, 8, Tokens(8192)));
  const UpdateCost cost = UpdateModel(s)(batch);
  EXPECT_NEAR(cost.total() - cost.host_transfer, expected.total(), 1e-9 * expected.total());
  EXPECT_NEAR(cost.attention_correction, 0, 1e-9 * expected.total());
  EXPECT_GT(cost.total(), fused);
  // DualPipe takes as many micro-batches from either end: 5 sequences for each of 4 replicas are 6.
  s.config.trainer.mechanisms.schedule = sim_hw::PipelineSchedule::DualPipe;
  EXPECT_EQ(UpdateModel(s)(std::vector<Tokens>(20, Tokens(8192))).micro_batches, 4 * 6);
}

TEST(UpdateCost, PackingTakesAwayTheAttentionBetweenSequences) {
  actors::SimulationSettings s = small();
  s.config.trainer.pp = 1;
  const sim_hw::Layout layout = actors::trainer_layout(s);
  const UpdateCost cost = UpdateModel(s)(std::vector<Tokens>(8 * 8, Tokens(1024)));
  EXPECT_EQ(cost.micro_batches, 8);  // One for each replica, eight sequences in it.
  // On one stage, the attention of every layer runs forward, again, and backward: 8 sequences of
  // 1024 instead of one of 8192.
  const sim_hw::Device d = sim_hw::make_device(s.cluster);
  sim_hw::AttentionShape a;
  a.heads = static_cast<double>(s.model.heads) / 2;
  a.kv_heads = static_cast<double>(s.model.kv_heads) / 2;
  a.key_dim = a.value_dim = static_cast<double>(s.model.head_dim);
  const double difference = sim_hw::attention_prefill_seconds(d, a, 8, 1024) -
                            sim_hw::attention_prefill_seconds(d, a, 1, 8192);
  const double expected =
      static_cast<double>(s.model.layers) * (2 + d.k.attention_backward) * difference;
  EXPECT_LT(expected, 0);
  EXPECT_NEAR(cost.attention_correction, expected, 1e-9 * -expected);
  EXPECT_EQ(layout.dp, 8);
}

TEST(UpdateCost, ALongSequencePaysForItsAttention) {
  // As many tokens and micro-batches: one of 57344 and seven of 1024, or eight of 8064 (which
  // packing leaves apart, since two exceed the limit). (57344^2 + 7 1024^2) / (8 8064^2) = 6.3
  // times the scores.
  actors::SimulationSettings s = small();
  s.cards = s.trainer_cards = 2;
  s.config.trainer.pp = 2;
  std::vector<Tokens> uneven(7, Tokens(1024));
  uneven.push_back(Tokens(8 * 8064 - 7 * 1024));
  const UpdateCost even = UpdateModel(s)(std::vector<Tokens>(8, Tokens(8064)));
  const UpdateCost long_one = UpdateModel(s)(uneven);
  EXPECT_EQ(even.micro_batches, long_one.micro_batches);
  EXPECT_DOUBLE_EQ(even.pipeline, long_one.pipeline);
  EXPECT_NEAR(even.attention_correction, 0, 1e-9 * even.pipeline);
  EXPECT_GT(long_one.attention_correction, 0.1 * even.pipeline);
}

TEST(UpdateCost, OptimizerOnTheHostCrossesItsLinkBothWays) {
  actors::SimulationSettings s = small();
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const double bytes = actors::trainer_memory(s).host.optimizer;
  EXPECT_GT(bytes, 0);
  const std::vector<Tokens> lengths(64, Tokens(2048));
  const UpdateCost host = UpdateModel(s)(lengths);
  EXPECT_DOUBLE_EQ(
      host.host_transfer,
      sim_hw::to_device_seconds(fabric, bytes) + sim_hw::from_device_seconds(fabric, bytes));
  s.config.trainer.optimizer_on_host = false;
  const UpdateCost device = UpdateModel(s)(lengths);
  EXPECT_EQ(device.host_transfer, 0);
  EXPECT_DOUBLE_EQ(host.total() - host.host_transfer, device.total());
}

TEST(UpdateCost, MoreTokensTakeLonger) {
  UpdateModel model(small());
  double last = 0;
  for (const std::size_t sequences : {16U, 64U, 256U, 1024U}) {
    const double now = model(std::vector<Tokens>(sequences, Tokens(3000))).total();
    EXPECT_GT(now, last);
    last = now;
  }
}

TEST_F(Trainer, IsReadyWithItsVersionAndTheSizeOfItsWeights) {
  const auto ready = d_.all<actors::TrainerReady>();
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].first,
            Time(from_seconds(actors::load_seconds(sim_hw::make_fabric(settings_.cluster),
                                                   actors::trainer_memory(settings_)))));
  EXPECT_EQ(ready[0].second.weights.version, PolicyVersion(5));
  EXPECT_EQ(ready[0].second.weights.bytes.count(),
            2 * sim_hw::count_parameters(settings_.model).total());
}

TEST_F(Trainer, TrainsForAsLongAsTheUpdateCosts) {
  const Time begin = d_.now();
  ASSERT_TRUE(d_.send(batch(5, 16, 4)));
  ASSERT_TRUE(d_.run());
  const Duration cost =
      from_seconds(UpdateModel(settings_)(std::vector<Tokens>(64, Tokens(2048))).total());
  const auto trained = d_.all<actors::Trained>();
  ASSERT_EQ(trained.size(), 1U);
  EXPECT_EQ(trained[0].first, begin + cost);
  const actors::Trained& t = trained[0].second;
  EXPECT_EQ(t.lease, LeaseId(6));
  EXPECT_EQ(t.groups.size(), 16U);
  EXPECT_EQ(t.weights.version, PolicyVersion(6));
  EXPECT_EQ(t.metrics.tokens, Tokens(64 * 2048));
  EXPECT_EQ(t.metrics.micro_batches, 16);
  EXPECT_EQ(t.metrics.reward_mean, 0.5);
  EXPECT_EQ(d_.spans(),
            (std::vector<actors::Span>{{actors::CardState::Train, begin, begin + cost}}));
}

TEST_F(Trainer, RefusesABatchForAnotherVersion) {
  const Status status = d_.send(batch(4, 2, 4));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context,
            "certificate rejected: the batch is for a step from version 4, but the trainer has "
            "version 5");
}

TEST_F(Trainer, RefusesAGroupOutsideTheBound) {
  const Status status = d_.send(batch(5, 2, 2));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context,
            "certificate rejected: group 0 was dispatched with version 2; at version 5 it exceeds "
            "the staleness bound 2");
}

TEST_F(Trainer, RefusesAGroupFromTheFuture) {
  EXPECT_FALSE(d_.send(batch(5, 2, 6)));
}

TEST_F(Trainer, RefusesAResponseOfAGroupThatTheCertificateDoesNotName) {
  CountedTrain work = batch(5, 2, 5);
  work.items.push_back({GroupId(9), Tokens(1), Tokens(1), 0});
  const Status status = d_.send(work);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context, "certificate rejected: group 9 is not in the certificate");
}

TEST_F(Trainer, SavesAtOnceAndOnlyTheVersionItIsAt) {
  const Time begin = d_.now();
  ASSERT_TRUE(d_.send(actors::SaveState{PolicyVersion(5), "folder"}));
  ASSERT_TRUE(d_.send(actors::SaveState{PolicyVersion(4), "folder"}));
  const auto saved = d_.all<actors::StateSaved>();
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_EQ(saved[0].first, begin);
  EXPECT_EQ(saved[0].second.error, "");
  EXPECT_EQ(saved[1].second.error, "asked to save version 4, but the trainer has version 5");
}

TEST_F(Trainer, DoesWhatCameWhileItWasBusyAfterwards) {
  ASSERT_TRUE(d_.send(batch(5, 16, 5)));
  ASSERT_TRUE(d_.send(actors::SaveState{PolicyVersion(6), "folder"}));
  EXPECT_TRUE(d_.all<actors::StateSaved>().empty());
  ASSERT_TRUE(d_.run());
  const auto saved = d_.all<actors::StateSaved>();
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved[0].second.error, "");
  EXPECT_EQ(saved[0].first, d_.all<actors::Trained>()[0].first);
}

TEST_F(Trainer, OffloadAndOnloadTakeTheirBytesOverTheHostLink) {
  const auto s = [&] { return actors::trainer_memory(settings_); }();
  const sim_hw::Fabric fabric = sim_hw::make_fabric(settings_.cluster);
  const Time begin = d_.now();
  ASSERT_TRUE(d_.send(actors::Switch{actors::SwitchAction::OffloadOptimizer}));
  ASSERT_TRUE(d_.run());
  ASSERT_TRUE(d_.send(actors::Switch{actors::SwitchAction::OnloadOptimizer}));
  ASSERT_TRUE(d_.run());
  const auto switched = d_.all<actors::Switched>();
  ASSERT_EQ(switched.size(), 2U);
  const Duration off = from_seconds(sim_hw::from_device_seconds(fabric, s.device.weights));
  const Duration on = from_seconds(sim_hw::to_device_seconds(fabric, s.device.weights));
  EXPECT_EQ(switched[0].first, begin + off);
  EXPECT_EQ(switched[0].second.cost.duration, off);
  EXPECT_EQ(switched[1].first, begin + off + on);
  // The device releases its gradients; the host gains a copy of the weights.
  const actors::SwitchCost& c = switched[0].second.cost;
  const auto all = [&](double per_device) { return actors::bytes_on(settings_, 8, per_device); };
  EXPECT_EQ(c.device_before, all(s.device.weights + s.device.gradients));
  EXPECT_EQ(c.device_after, all(s.device.weights));
  EXPECT_EQ(c.host_before, all(s.host.optimizer));
  EXPECT_EQ(c.host_after, all(s.host.optimizer + s.device.weights));
  EXPECT_EQ(switched[1].second.cost.device_after, c.device_before);
  EXPECT_EQ(switched[1].second.cost.host_after, c.host_before);
  Duration busy{};
  for (const actors::Span& span : d_.spans()) {
    EXPECT_EQ(span.state, actors::CardState::Switch);
    busy += span.end - span.begin;
  }
  EXPECT_EQ(busy, off + on);
}

TEST_F(Trainer, CountsTheStateThatItMovesToOtherCards) {
  const auto cards = [](std::uint32_t count) {
    std::vector<CardId> out;
    for (std::uint32_t card = 0; card < count; ++card)
      out.emplace_back(card);
    return out;
  };
  using A = actors::SwitchAction;
  ASSERT_TRUE(d_.send(actors::Switch{A::OnloadOptimizer, cards(4)}));  // It starts there.
  ASSERT_TRUE(d_.send(actors::Switch{A::OnloadOptimizer, cards(8)}));
  ASSERT_TRUE(d_.run());
  ASSERT_TRUE(d_.send(actors::Stop{}));
  const auto planes = d_.all<actors::Activity>().back().second.usage.value().planes;
  // Weights go to the hosts of the 4 cards. From there, with the optimizer states, they go over the
  // node to the hosts of the 8 cards (16 devices), and the weights to the devices. It began with a
  // copy of its weights from the hosts.
  const actors::ActorMemory memory = actors::trainer_memory(settings_);
  const double weights = 16 * memory.device.weights;
  const double state = weights + 16 * memory.host.optimizer;
  EXPECT_GT(memory.host.optimizer, 0);
  const std::map<std::string, double> expected{{"package", 0},
                                               {"node", state},
                                               {"supernode", 0},
                                               {"rdma", 0},
                                               {"to host", weights + state},
                                               {"from host", weights + state + weights}};
  for (const actors::PlaneUse& p : planes)
    EXPECT_NEAR(static_cast<double>(p.bytes.count()), expected.at(p.plane), 2) << p.plane;
}

TEST_F(Trainer, RefusesABatchWhileItsOptimizerIsParked) {
  ASSERT_TRUE(d_.send(actors::Switch{actors::SwitchAction::OffloadOptimizer}));
  ASSERT_TRUE(d_.run());
  EXPECT_FALSE(d_.send(batch(5, 2, 5)));
}

TEST_F(Trainer, RefusesWhatATrainerCannotDo) {
  ASSERT_TRUE(d_.send(actors::Switch{actors::SwitchAction::AllocateKv}));
  EXPECT_EQ(d_.all<actors::Switched>().at(0).second.error, "a trainer cannot allocate_kv");
}

TEST(SimulatedTrainer, RefusesToOnloadWhatDoesNotFitAndStaysParked) {
  actors::SimulationSettings s = small();
  SimulatedTrainer trainer(s, PolicyVersion(0));
  s.cluster.die.memory = Bytes(s.cluster.die.memory.count() / 64);
  SimulatedTrainer tight(s, PolicyVersion(0));
  Driven d(tight);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.run());
  for (const auto action :
       {actors::SwitchAction::OffloadOptimizer, actors::SwitchAction::OnloadOptimizer}) {
    ASSERT_TRUE(d.send(actors::Switch{action}));
    ASSERT_TRUE(d.run());
  }
  const auto switched = d.all<actors::Switched>();
  ASSERT_EQ(switched.size(), 2U);
  EXPECT_EQ(switched[0].second.error, "");
  EXPECT_NE(switched[1].second.error.find("training needs"), std::string::npos);
  EXPECT_EQ(switched[1].second.cost.device_after, switched[0].second.cost.device_after);
  EXPECT_EQ(switched[1].second.cost.host_after, switched[0].second.cost.host_after);
  EXPECT_FALSE(d.send(batch(0, 2, 0)));
}

TEST(SimulatedTrainer, NamesALayoutThatDoesNotDivideItsCards) {
  actors::SimulationSettings s = small();
  s.config.trainer.pp = 28;
  SimulatedTrainer trainer(s, PolicyVersion(0));
  Driven d(trainer);
  const Status status = d.start();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context, "tp * pp * cp = 2 * 28 * 1 = 56 devices, but there are 16");
}

TEST(SimulatedTrainer, EqualCallsGiveEqualMessages) {
  const auto trace = [] {
    SimulatedTrainer trainer(small(), PolicyVersion(0));
    Driven d(trainer);
    EXPECT_TRUE(d.start());
    for (std::uint64_t v = 0; v < 5; ++v) {
      EXPECT_TRUE(d.send(batch(v, 8 + v, v)));
      EXPECT_TRUE(d.run());
    }
    return d.trace();
  };
  EXPECT_EQ(trace(), trace());
}

// --- Resource use

actors::Usage last_usage(Driven& d) {
  EXPECT_TRUE(d.send(actors::Stop{}));
  const auto activity = d.all<actors::Activity>();
  EXPECT_TRUE(!activity.empty() && activity.back().second.usage);
  return activity.back().second.usage.value_or(actors::Usage{});
}

std::int64_t moved(const actors::Usage& usage, std::string_view what) {
  std::int64_t bytes = 0;
  for (const actors::PlaneUse& plane : usage.planes) {
    const bool host = plane.plane.ends_with("host");
    if (what.empty() ? !host : plane.plane == what)
      bytes += plane.bytes.count();
  }
  return bytes;
}

TEST(UpdateCost, WhileItTrainsItsMfuIsThatOfTheModelledIteration) {
  actors::SimulationSettings s = small();
  s.config.trainer.optimizer_on_host = false;
  const sim_hw::Layout layout = actors::trainer_layout(s);
  const sim_hw::Device device = sim_hw::make_device(s.cluster);
  const sim_hw::ModelSpec model = actors::trained_model(s);
  const sim_hw::TrainShape shape = actors::packed_shape(s, layout, 8, Tokens(8192));
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const sim_hw::TrainTime time = sim_hw::train_iteration_time(model, device, fabric, layout, shape);
  // 32 sequences of 8192 over dp = 4 fill 8 micro-batches of one each, so that both count alike.
  const UpdateCost cost = UpdateModel(s)(std::vector<Tokens>(32, Tokens(8192)));
  const double possible = 16 * device.matrix_peak;
  const double expected = sim_hw::model_flops(model, shape) / (time.total() * possible);
  EXPECT_NEAR(cost.flops / (cost.total() * possible), expected, 1e-9 * expected);
  EXPECT_GT(expected, 0.1);
  EXPECT_LT(expected, 0.6);
  EXPECT_NEAR(cost.sent.total(),
              sim_hw::train_traffic(model, device, fabric, layout, shape).total().total(),
              1e-9 * cost.sent.total());
}

TEST(UpdateCost, HoldsWhatItsLongestMicroBatchNeedsAndNoMoreThanPredicted) {
  const actors::SimulationSettings s = small();
  const actors::ActorMemory predicted = actors::trainer_memory(s);
  const UpdateCost filled = UpdateModel(s)(std::vector<Tokens>(32, Tokens(8192)));
  const UpdateCost light = UpdateModel(s)(std::vector<Tokens>(32, Tokens(4000)));
  EXPECT_DOUBLE_EQ(filled.memory.device.total(), predicted.device.total());
  EXPECT_LE(light.memory.device.total(), predicted.device.total());
  EXPECT_GT(light.memory.device.total(), predicted.device.weights + predicted.device.gradients);
}

TEST_F(Trainer, ReportsWhatItUsedWhenItStops) {
  for (std::uint64_t v = 5; v < 7; ++v) {
    ASSERT_TRUE(d_.send(batch(v, 16, v)));
    ASSERT_TRUE(d_.run());
  }
  const UpdateCost one = UpdateModel(settings_)(std::vector<Tokens>(64, Tokens(2048)));
  const actors::Usage usage = last_usage(d_);
  EXPECT_EQ(usage.devices, 16);
  EXPECT_DOUBLE_EQ(usage.flops.count(), 2 * one.flops);
  EXPECT_NEAR(static_cast<double>(moved(usage, "")), 2 * one.sent.total(), 8);
  EXPECT_NEAR(static_cast<double>(moved(usage, "to host")), 2 * 16 * one.swapped_optimizer, 1);
  EXPECT_NEAR(static_cast<double>(usage.device.peak.count()), one.memory.device.total(), 1);
  EXPECT_LE(usage.device.peak, usage.device.predicted);
  EXPECT_LE(usage.device.predicted, usage.device.capacity);
  EXPECT_LE(usage.host.peak, usage.host.capacity);
}

TEST_F(Trainer, CountsTheShareOfAnUpdateThatWasDone) {
  ASSERT_TRUE(d_.send(batch(5, 16, 5)));
  const Duration whole = *trainer_.next_event() - d_.now();
  ASSERT_TRUE(d_.run_until(d_.now() + whole / 4));
  const UpdateCost one = UpdateModel(settings_)(std::vector<Tokens>(64, Tokens(2048)));
  EXPECT_NEAR(last_usage(d_).flops.count(), one.flops / 4, 1e-6 * one.flops);
}

TEST_F(Trainer, OffloadCountsOnTheLinkToTheHost) {
  ASSERT_TRUE(d_.send(actors::Switch{actors::SwitchAction::OffloadOptimizer}));
  ASSERT_TRUE(d_.run());
  const actors::ActorMemory m = actors::trainer_memory(settings_);
  const actors::Usage usage = last_usage(d_);
  EXPECT_NEAR(static_cast<double>(moved(usage, "to host")), 16 * m.device.weights, 1);
  EXPECT_NEAR(
      static_cast<double>(usage.host.peak.count()), m.host.optimizer + m.device.weights, 16);
  EXPECT_EQ(moved(usage, ""), 0);
}

}  // namespace
}  // namespace temper::trainer
