// Resource use that a simulated rollout engine reports: FLOP, links, memory.
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"
#include "tests/support/simulated_drive.hpp"

#include <deque>
#include <numeric>

namespace temper::rollout {
namespace {

/// Processes everything, then stops.
actors::Usage usage_of(World& world, std::vector<Scheduled> messages) {
  messages.push_back(at(time_of(1e5), actors::Stop{}));
  world.run(messages);
  const auto activity = world.all<actors::Activity>();
  EXPECT_TRUE(!activity.empty() && activity.back().usage);
  return activity.back().usage.value_or(actors::Usage{});
}

double on_planes(const actors::Usage& usage) {
  double bytes = 0;
  for (const actors::PlaneUse& plane : usage.planes)
    bytes += plane.plane.ends_with("host") ? 0 : static_cast<double>(plane.bytes.count());
  return bytes;
}

TEST(SimulatedRollout, CountsTheFlopsOfItsTokensAndNoneTwice) {
  // Each token of a response attends to its predecessors and itself, each prompt to its triangle;
  // tokens that are recomputed because of a small cache do not count.
  auto roomy = small_engine();
  auto tight = small_engine();
  limit_cache(tight, 3000);
  for (auto* s : {&roomy, &tight}) {
    World world(*s);
    const actors::Usage usage = usage_of(world, arriving(work(30, 8), 0, 10, 1));
    EXPECT_EQ(world.actor().counters().preemptions > 0, s == &tight);
    const sim_hw::ModelFlops flops(actors::served_model(*s));
    const actors::Lengths prompts(s->config.prompt, 1, actors::kPromptLengths);
    double expected = 0;
    for (std::uint64_t g = 0; g < 30; ++g) {
      const auto prompt = static_cast<double>(prompts.of(g).count());
      expected += flops.forward(sim_hw::continued(0, prompt));
      for (std::uint64_t i = 0; i < 8; ++i) {
        const auto length = static_cast<double>(length_of(*s, ResponseId(8 * g + i)));
        expected += flops.forward(sim_hw::continued(prompt, length)) + flops.per_logit * length;
      }
    }
    EXPECT_NEAR(usage.flops.count(), expected, 1e-9 * expected);
  }
}

TEST(SimulatedRollout, SendsWhatItsStepsExchange) {
  auto s = small_engine();
  s.config.response.kind = actors::LengthKind::Constant;  // 300 tokens, all at once.
  World world(s);
  const actors::Usage usage = usage_of(world, {at(Time{}, work(1, 8)[0])});
  EngineCost cost(s);
  const actors::Lengths prompts(s.config.prompt, 1, actors::kPromptLengths);
  std::deque<PrefillPiece> pieces{{prompts.of(0).count(), 0}};
  double expected = 300 * cost.decode({8, 0}).sent.total() * 4;
  for (; !pieces.empty(); cost.finish_prefill(pieces))
    expected += cost.prefill_use(pieces).sent.total();
  EXPECT_EQ(world.actor().counters().decode_steps, 300);
  EXPECT_NEAR(on_planes(usage), expected, 8);
  EXPECT_GT(expected, 0);
}

TEST(EngineCost, StepsWaitForTheBusiestExperts) {
  auto s = actors::testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = 32;
  s.config.rollout.tp = 4;
  s.config.rollout.ep = 64;
  const auto decode = [](EngineCost& cost) { return cost.decode({1600, 1600 * 4096}).seconds(1); };
  EngineCost balanced(s);
  s.config.experts.loads = actors::ExpertLoadKind::Drifting;
  EngineCost original(s);
  original.use_version(PolicyVersion(1));
  EXPECT_GT(decode(original), 1.02 * decode(balanced));
  EXPECT_EQ(original.decode({1600, 0}).sent.total(), balanced.decode({1600, 0}).sent.total());
  s.config.experts.placement = actors::ExpertPlacing::Predicted;
  EngineCost predicted(s);
  predicted.use_version(PolicyVersion(0));
  const double first = decode(predicted);
  predicted.use_version(PolicyVersion(1));
  EXPECT_LT(decode(predicted), first);
  EXPECT_LT(decode(balanced), decode(predicted));
  // A bound that was computed under one version holds under the next.
  EXPECT_EQ(predicted.least(100, 1600), balanced.least(100, 1600));
}

TEST(SimulatedRollout, ReceivesAVersionAndCopiesItToItsHostAndBack) {
  const auto s = small_engine();
  World world(s);
  const actors::Usage usage = usage_of(
      world,
      {at(time_of(60), stage(1)), at(time_of(120), actors::CommitWeights{PolicyVersion(1)})});
  const auto published = actors::publish_weights(sim_hw::make_fabric(s.cluster), s);
  const double weights = actors::rollout_memory(s).device.weights;
  EXPECT_NEAR(on_planes(usage), published.received.total(), 8);
  const std::size_t planes = usage.planes.size();
  EXPECT_EQ(usage.planes[planes - 2].plane, "to host");
  EXPECT_NEAR(
      static_cast<double>(usage.planes[planes - 2].bytes.count()), published.received.total(), 1);
  EXPECT_NEAR(static_cast<double>(usage.planes[planes - 1].bytes.count()), 2 * 4 * weights, 1)
      << "at its start, and at the commit";
  EXPECT_NEAR(static_cast<double>(usage.host.peak.count()), weights, 1);
}

TEST(SimulatedRollout, ItsHighWaterMarkIsThatOfTheBlocksInUse) {
  auto s = small_engine();
  limit_cache(s, 3000);
  World tight(s);
  const actors::Usage full = usage_of(tight, arriving(work(30, 8), 0, 10, 1));
  EXPECT_LE(full.device.peak, full.device.predicted);
  EXPECT_LE(full.device.predicted, full.device.capacity);
  EXPECT_LE(full.host.peak, full.host.capacity);
  const auto counters = tight.actor().counters();
  const double share =
      static_cast<double>(counters.most_blocks) / static_cast<double>(counters.blocks);
  const sim_hw::Ledger ledger = actors::rollout_memory(s).device;
  EXPECT_NEAR(static_cast<double>(full.device.peak.count()),
              ledger.total() - (1 - share) * ledger.kv_cache,
              1);
  World roomy(small_engine());
  const actors::Usage one = usage_of(roomy, {at(Time{}, work(1, 1)[0])});
  EXPECT_LT(static_cast<double>(one.device.peak.count()),
            0.5 * static_cast<double>(one.device.predicted.count()));
}

TEST(SimulatedRollout, AStopInTheMiddleCountsTheStepsThatEnded) {
  auto s = small_engine();
  s.config.response.kind = actors::LengthKind::Constant;
  World whole(s);
  const double all = usage_of(whole, {at(Time{}, work(1, 8)[0])}).flops.count();
  World cut(s);
  Time end{};
  for (const Sent& sent : whole.sent())
    end = sent.is<actors::CountedGenerated>() ? sent.at : end;
  cut.run({at(Time{}, work(1, 8)[0]), at(Time(end.time_since_epoch() / 2), actors::Stop{})});
  const auto activity = cut.all<actors::Activity>();
  const auto stopped = std::find_if(
      activity.begin(), activity.end(), [](const auto& a) { return a.usage.has_value(); });
  ASSERT_NE(stopped, activity.end());
  EXPECT_GT(stopped->usage->flops.count(), 0.3 * all);
  EXPECT_LT(stopped->usage->flops.count(), 0.6 * all);
}

TEST(SimulatedRollout, SharesThePublicationWithEnginesOfEqualSettings) {
  const auto s = small_engine();
  const double publish = actors::publish_seconds(sim_hw::make_fabric(s.cluster), s);
  const auto publications = std::make_shared<actors::Publications>();
  for (const double times : {1.0, 2.0}) {
    World world(s, 1, OnNewWeights::KeepKv, publications);
    world.run({at(Time{}, stage(1))});
    ASSERT_EQ(world.all<actors::WeightsStaged>().size(), 1U);
    EXPECT_EQ(world.now(), time_of(times * publish));
    ASSERT_TRUE(publications->whole);
    publications->whole->seconds *= 2;  // The second engine must not compute it again.
  }
}

}  // namespace
}  // namespace temper::rollout
