#include "trainer/synthetic_engine.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace temper::trainer {
namespace {

class Synthetic : public ::testing::Test {
 protected:
  const RealClock clock_;
  SyntheticEngine engine_{Duration(0), Bytes(0), clock_};
  const test::TemporaryFolder folder_;
  const std::vector<TrainSample> batch_{
      {GroupId(1), {1, 2, 3}, {4, 5}, {-1, -1}, {}, 1.0},
      {GroupId(1), {1, 2, 3}, {4, 5, 6}, {-1, -1, -1}, {}, 0.5},
  };
};

TEST_F(Synthetic, CountsTokensAndAveragesTheReward) {
  const auto metrics = engine_.update(batch_);
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->tokens, Tokens(3 + 2 + 3 + 3));
  EXPECT_DOUBLE_EQ(metrics->reward_mean, 0.75);
  EXPECT_FALSE(engine_.update({}));
}

TEST_F(Synthetic, HasOtherWeightsAfterEveryUpdate) {
  const std::string before = *engine_.weights();
  ASSERT_TRUE(engine_.update(batch_));
  EXPECT_NE(*engine_.weights(), before);
}

TEST_F(Synthetic, ContinuesFromWhatItSaved) {
  ASSERT_TRUE(engine_.update(batch_));
  ASSERT_TRUE(engine_.update(batch_));
  ASSERT_TRUE(engine_.save(folder_.path()));
  SyntheticEngine other(Duration(0), Bytes(0), clock_);
  ASSERT_TRUE(other.load(folder_.path()));
  EXPECT_EQ(*other.weights(), *engine_.weights());
}

TEST_F(Synthetic, RefusesAFolderWithoutItsState) {
  EXPECT_FALSE(engine_.load(folder_.path()));
  for (const char* broken : {"", "12", "{}", "{\"updates\": -1}", "{\"updates\": \"1\"}", "{"}) {
    ASSERT_TRUE(write_file_atomically(folder_ / "synthetic.json", broken));
    const Status loaded = engine_.load(folder_.path());
    ASSERT_FALSE(loaded) << broken;
    EXPECT_EQ(loaded.error().code, ErrorCode::Corrupt);
  }
}

TEST_F(Synthetic, MovesItsOptimizerToTheHostAndBackAndDoesNotTrainMeanwhile) {
  const Bytes optimizer = engine_.memory().optimizer;
  ASSERT_TRUE(engine_.offload());
  ASSERT_TRUE(engine_.offload());
  EXPECT_EQ(engine_.memory().optimizer, Bytes(0));
  EXPECT_EQ(engine_.memory().host, optimizer);
  EXPECT_FALSE(engine_.update(batch_));
  ASSERT_TRUE(engine_.onload());
  EXPECT_EQ(engine_.memory().optimizer, optimizer);
  EXPECT_EQ(engine_.memory().host, Bytes(0));
  EXPECT_TRUE(engine_.update(batch_));
}

}  // namespace
}  // namespace temper::trainer
