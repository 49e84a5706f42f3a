// A simulated trainer waits for the tensors of its batch.
#include "actors/simulation/tensor_fetch.hpp"
#include "tests/support/simulated_drive.hpp"
#include "trainer/simulated/trainer_actor.hpp"

#include <gtest/gtest.h>

namespace temper::trainer {
namespace {

using actors::CardState;
using actors::CountedTrain;

/// On cards 8 to 15 of cm384, engines on the 8 before them; 1 MB for each token.
actors::SimulationSettings with_tensors() {
  actors::SimulationSettings s = actors::testing::settings_of("cm384", "qwen2.5-7b");
  s.config.trainer = {.tp = 2, .pp = 2, .micro_batch_tokens = 8192};
  s.config.tensors.per_token = Bytes(1'000'000);
  for (std::uint32_t i = 0; i < 8; ++i) {
    s.tensor_places.engines.emplace_back(i);
    s.tensor_places.trainer.emplace_back(8 + i);
  }
  return s;
}

/// 16 groups of 4 responses, each of 1024 + 1024 tokens.
CountedTrain batch() {
  CountedTrain work;
  work.lease = LeaseId(6);
  work.certificate.step = PolicyVersion(5);
  work.certificate.bound = 2;
  for (std::uint64_t g = 0; g < 16; ++g) {
    work.certificate.groups.push_back({GroupId(g), PolicyVersion(5)});
    for (int i = 0; i < 4; ++i)
      work.items.push_back({GroupId(g), Tokens(1024), Tokens(1024), 1.0});
  }
  return work;
}
constexpr double kBytes = 64 * 2048 * 1e6;

class TrainerTensors : public ::testing::Test {
 protected:
  TrainerTensors() : trainer_(with_tensors(), PolicyVersion(5)), d_(trainer_) {
    EXPECT_TRUE(d_.start());
    EXPECT_TRUE(d_.run());
  }
  actors::Usage last_usage() {
    EXPECT_TRUE(d_.send(actors::Stop{}));
    return d_.all<actors::Activity>().back().second.usage.value_or(actors::Usage{});
  }
  static Duration time_of(double bytes) {
    const actors::SimulationSettings s = with_tensors();
    return from_seconds(
        fetch_tensors(sim_hw::make_fabric(s.cluster), s, s.tensor_places, bytes).seconds);
  }

  SimulatedTrainer trainer_;
  actors::testing::Driven d_;
};

TEST_F(TrainerTensors, AStepWaitsForThemAndItsHostsHoldThem) {
  ASSERT_TRUE(d_.send(batch()));
  const UpdateCost one = UpdateModel(with_tensors())(std::vector<Tokens>(64, Tokens(2048)));
  EXPECT_EQ(*trainer_.next_event() - d_.now(), time_of(kBytes) + from_seconds(one.total()));
  ASSERT_TRUE(d_.run());
  const std::vector<actors::Span> spans = d_.spans();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].state, CardState::WeightSync);
  EXPECT_EQ(spans[0].end - spans[0].begin, time_of(kBytes));
  const actors::Usage usage = last_usage();
  ASSERT_TRUE(usage.tensors);
  EXPECT_EQ(usage.tensors->fetched.count(), std::int64_t(kBytes));
  EXPECT_EQ(usage.tensors->fetching, time_of(kBytes));
  const double on_host = one.memory.host.total() + kBytes / 16;
  EXPECT_NEAR(static_cast<double>(usage.host.peak.count()), on_host, 1);
}

TEST_F(TrainerTensors, ThoseOfPreparedGroupsAreReadOnce) {
  actors::CountedPrepare prepare;
  prepare.lease = LeaseId(9);
  prepare.step = PolicyVersion(5);
  prepare.items = batch().items;
  prepare.items.resize(32);
  ASSERT_TRUE(d_.send(prepare));
  ASSERT_TRUE(d_.run());
  ASSERT_TRUE(d_.send(batch()));
  ASSERT_TRUE(d_.run());
  const actors::Usage usage = last_usage();
  EXPECT_EQ(usage.tensors->fetched.count(), std::int64_t(kBytes));
  EXPECT_EQ(usage.tensors->fetching, 2 * time_of(kBytes / 2));
}

}  // namespace
}  // namespace temper::trainer
