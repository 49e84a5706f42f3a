#include "orchestrator/metrics/usage.hpp"

#include "orchestrator/scheduler/state/config.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;
using actors::CardState;
using actors::RoleKind;

std::vector<CardId> cards(std::uint32_t begin, std::uint32_t end) {
  std::vector<CardId> out;
  for (std::uint32_t card = begin; card < end; ++card)
    out.emplace_back(card);
  return out;
}

/// Two engines of one card, a trainer of two; two devices of 100 FLOP/s each make a card.
class Usage : public ::testing::Test {
 protected:
  Usage() {
    event::Started started;
    started.config->actors = {{"rollout-0", RoleKind::Rollout, cards(0, 1), 1},
                              {"rollout-1", RoleKind::Rollout, cards(1, 2), 1},
                              {"trainer", RoleKind::Trainer, cards(2, 4), 0}};
    feed(0s, started);
  }
  void feed(Duration at, Event event) {
    totals_.feed({sequence_++, Time(at), std::move(event), {}});
  }
  void launch(std::uint32_t actor, Duration at) {
    totals_.feed({sequence_++, Time(at), event::ClockRead{}, {command::Launch{ActorId(actor)}}});
  }
  void report(std::uint32_t actor,
              Duration at,
              std::vector<actors::Span> spans,
              std::optional<actors::Usage> usage) {
    feed(at, event::Activity{ActorId(actor), std::move(spans), std::move(usage)});
  }
  static actors::Usage used(double flops, std::int64_t devices, std::int64_t bytes) {
    actors::Usage u;
    u.devices = devices;
    u.flops = Flops(flops);
    u.peak = FlopsPerSecond(100);
    u.planes = {{"node", Bytes(bytes), BytesPerSecond(50)},
                {"to host", Bytes(bytes / 2), BytesPerSecond(10)}};
    u.device = {Bytes(bytes), Bytes(900), Bytes(1000)};
    return u;
  }

  UsageTotals totals_;
  std::uint64_t sequence_ = 0;
};

TEST_F(Usage, ThereIsNoneWhereNobodyReports) {
  report(0, 5s, {{CardState::Decode, Time(1s), Time(5s)}}, std::nullopt);
  EXPECT_FALSE(summarize_usage(totals_, 4, 10s, 1));
}

TEST_F(Usage, MfuIsFlopsOverTimeAndPeak) {
  report(0, 2s, {{CardState::Decode, Time(0s), Time(2s)}}, used(100, 2, 10));
  // The last report counts, in full; waiting and switching are not work.
  report(0,
         8s,
         {{CardState::Prefill, Time(4s), Time(6s)}, {CardState::WeightSync, Time(6s), Time(8s)}},
         used(400, 2, 100));
  report(1, 10s, {{CardState::Decode, Time(0s), Time(4s)}}, used(600, 2, 300));
  report(2, 10s, {{CardState::Train, Time(5s), Time(10s)}}, used(1500, 4, 800));
  const auto usage = summarize_usage(totals_, 4, 10s, 2);
  ASSERT_TRUE(usage);
  const MfuSummary& mfu = usage->mfu;
  EXPECT_DOUBLE_EQ(mfu.peak_flops_per_s, 4 * 2 * 100);
  EXPECT_DOUBLE_EQ(mfu.mfu, 2500.0 / (10 * 800));
  // Engines: 1000 FLOP; 2 x 200 FLOP/s for 10 s, of which each works 4 s.
  EXPECT_DOUBLE_EQ(mfu.roles.at(RoleKind::Rollout).mfu, 1000.0 / 4000);
  EXPECT_DOUBLE_EQ(mfu.roles.at(RoleKind::Rollout).while_busy, 1000.0 / 1600);
  EXPECT_DOUBLE_EQ(mfu.roles.at(RoleKind::Trainer).mfu, 1500.0 / 4000);
  EXPECT_DOUBLE_EQ(mfu.roles.at(RoleKind::Trainer).while_busy, 1500.0 / 2000);
}

TEST_F(Usage, ActorsWithoutDevicesReportTensorsAlone) {
  actors::Usage engine, trainer;
  engine.tensors = {Bytes(60), Bytes(0), Bytes(0), Bytes(0), 0s};
  trainer.tensors = {Bytes(0), Bytes(0), Bytes(0), Bytes(40), 3s};
  report(0, 1s, {}, engine);
  report(2, 1s, {}, trainer);
  EXPECT_FALSE(summarize_usage(totals_, 4, 10s, 2));
  const auto tensors = summarize_tensors(totals_, 2);
  ASSERT_TRUE(tensors);
  EXPECT_EQ(tensors->stored_bytes, 60);
  EXPECT_EQ(tensors->fetched_bytes, 40);
  EXPECT_DOUBLE_EQ(tensors->fetched_bytes_per_update, 20);
  EXPECT_DOUBLE_EQ(tensors->fetch_s_per_update, 1.5);
  EXPECT_FALSE(tensors->dropped_bytes || tensors->held_bytes) << "they do not know";
}

TEST_F(Usage, AnActorThatIsStartedAgainKeepsWhatItUsedBefore) {
  actors::Usage first = used(600, 2, 100), second = used(200, 2, 40), third = used(100, 2, 20);
  first.engine = {0, 1s, 4s, 200};
  first.tensors = {Bytes(50), Bytes(10), Bytes(30), Bytes(0), 0s};
  second.engine = {0, 1s, 1s, 100};
  second.tensors = {Bytes(20), Bytes(0), Bytes(20), Bytes(0), 0s};
  third.engine = {0, 0s, 1s, 50};
  launch(0, 0s);
  report(0, 4s, {{CardState::Decode, Time(0s), Time(4s)}}, first);
  launch(0, 5s);
  report(0, 6s, {}, used(50, 2, 10));
  report(0, 7s, {{CardState::Decode, Time(6s), Time(7s)}}, second);
  launch(0, 8s);
  report(0, 10s, {{CardState::Decode, Time(9s), Time(10s)}}, third);
  const auto usage = summarize_usage(totals_, 4, 10s, 1);
  ASSERT_TRUE(usage);
  EXPECT_DOUBLE_EQ(usage->mfu.flops, 900);
  EXPECT_DOUBLE_EQ(usage->mfu.roles.at(RoleKind::Rollout).while_busy, 900.0 / (200 * 6));
  EXPECT_EQ(usage->network.planes[0].bytes, 160);
  EXPECT_EQ(usage->memory.at(RoleKind::Rollout).device.peak_bytes, 100);
  const auto tensors = summarize_tensors(totals_, 1);
  ASSERT_TRUE(usage->engines && tensors);
  EXPECT_DOUBLE_EQ(usage->engines->decode, 0.6);
  EXPECT_EQ(tensors->stored_bytes, 70);
  EXPECT_EQ(tensors->dropped_bytes, 60) << "with those that were lost with the engine";
  EXPECT_EQ(tensors->held_bytes, 0);
}

TEST_F(Usage, PlanesSumOverActorsAndMemoryIsThatOfTheFullest) {
  report(0, 10s, {}, used(1, 2, 100));
  report(1, 10s, {}, used(1, 2, 300));
  report(2, 10s, {}, used(1, 4, 800));
  const auto usage = summarize_usage(totals_, 4, 10s, 3);
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->network.planes.size(), 2U);
  const PlaneSummary& node = usage->network.planes[0];
  EXPECT_EQ(node.plane, "node");
  EXPECT_EQ(node.bytes, 1200);
  EXPECT_DOUBLE_EQ(node.bytes_per_update, 400);
  EXPECT_DOUBLE_EQ(node.share, 1200.0 / (50 * 8 * 10));  // 8 devices of 50 B/s, 10 s.
  EXPECT_EQ(node.roles.at(RoleKind::Rollout), 400);
  EXPECT_EQ(usage->memory.at(RoleKind::Rollout).device.peak_bytes, 300);
  EXPECT_EQ(usage->memory.at(RoleKind::Rollout).device.predicted_bytes, 900);
  EXPECT_EQ(usage->memory.at(RoleKind::Trainer).device.peak_bytes, 800);
  EXPECT_EQ(usage->memory.at(RoleKind::Trainer).device.capacity_bytes, 1000);
}

TEST_F(Usage, EnginesHaveTheMeanOfTheirSharesAndOneTimePerToken) {
  const auto engine = [](std::int64_t prefill_devices, Duration prefill, Duration decode) {
    actors::Usage u = used(1, 2, 100);
    u.engine = {prefill_devices, prefill, decode, 200};
    return u;
  };
  report(0, 10s, {}, engine(0, 1s, 4s));
  report(1, 10s, {}, engine(0, 3s, 6s));
  report(2, 10s, {}, used(1, 4, 800));
  const auto together = summarize_usage(totals_, 4, 10s, 1)->engines;
  ASSERT_TRUE(together);
  EXPECT_DOUBLE_EQ(together->prefill, 0.2);
  EXPECT_DOUBLE_EQ(together->decode, 0.5);
  EXPECT_DOUBLE_EQ(together->token_s, 14.0 / 400);  // Prefill steps are between two tokens.
  report(0, 10s, {}, engine(1, 1s, 4s));
  report(1, 10s, {}, engine(1, 3s, 6s));
  const auto apart = summarize_usage(totals_, 4, 10s, 1)->engines;
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->prefill_devices, 1);
  EXPECT_DOUBLE_EQ(apart->prefill, 0.2);
  EXPECT_DOUBLE_EQ(apart->token_s, 10.0 / 400);
}

TEST_F(Usage, CardsThatRolesShareHaveTheirPeakOnce) {
  event::Started started;
  started.config->actors = {{"rollout-0", RoleKind::Rollout, cards(0, 2), 1},
                            {"trainer", RoleKind::Trainer, cards(0, 2), 0}};
  feed(0s, started);
  report(0, 10s, {}, used(1000, 4, 0));
  report(1, 10s, {}, used(1000, 4, 0));
  const auto usage = summarize_usage(totals_, 2, 10s, 1);
  ASSERT_TRUE(usage);
  EXPECT_DOUBLE_EQ(usage->mfu.mfu, 2000.0 / (4 * 100 * 10));
}

}  // namespace
}  // namespace temper::orchestrator
