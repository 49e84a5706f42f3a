// A simulated trainer waits for the tensors of its batch.
#include "actors/simulation/tensor_fetch.hpp"
#include "tests/trainer/simulated/waiting_trainer.hpp"

namespace temper::trainer {
namespace {

using actors::CardState;

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

constexpr double kBytes = 64 * 2048 * 1e6;

class TrainerTensors : public WaitingTrainer {
 protected:
  TrainerTensors() : WaitingTrainer(with_tensors()) {}
  static Duration time_of(double bytes) {
    const actors::SimulationSettings s = with_tensors();
    return from_seconds(
        fetch_tensors(sim_hw::make_fabric(s.cluster), s, s.tensor_places, bytes).seconds);
  }
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
  ASSERT_TRUE(d_.send(half_of_batch()));
  ASSERT_TRUE(d_.run());
  ASSERT_TRUE(d_.send(batch()));
  ASSERT_TRUE(d_.run());
  const actors::Usage usage = last_usage();
  EXPECT_EQ(usage.tensors->fetched.count(), std::int64_t(kBytes));
  EXPECT_EQ(usage.tensors->fetching, 2 * time_of(kBytes / 2));
}

}  // namespace
}  // namespace temper::trainer
