// The figures of a frame: what it is drawn from.
#include "cli/view/frame.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::cli {

using namespace orchestrator;
namespace {

using namespace std::chrono_literals;

TEST(Frame, TimeLeftFollowsTheRecentPace) {
  std::vector<Update> updates(21);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    updates[i].version = PolicyVersion(i + 1);
    // Slow at first, then two seconds each.
    updates[i].time = Time(i < 10 ? 100s * static_cast<int>(i) : 900s + 2s * static_cast<int>(i));
  }
  const Time now = updates.back().time + 1s;
  EXPECT_EQ(time_left(updates, 31, now), Duration(19s));  // 10 * 2 s, one of them begun
  EXPECT_EQ(time_left({}, 31, now), std::nullopt);
}

TEST(Frame, AnEvaluationHasItsErrorBarAndSaysWhatIsNoise) {
  const auto text = [](double last, double best, std::uint64_t problems) {
    return held_out_text({PolicyVersion(60), last}, {PolicyVersion(50), best}, problems);
  };
  EXPECT_EQ(text(0.2, 0.4, 15), "pass@1 0.200 [0.07, 0.45] v60; best 0.400 v50, within noise");
  EXPECT_EQ(text(0.2, 0.8, 15), "pass@1 0.200 [0.07, 0.45] v60; best 0.800 v50");
  EXPECT_EQ(held_out_text({PolicyVersion(60), 1}, {PolicyVersion(60), 1}, 200),
            "pass@1 1.000 [0.98, 1.00] v60, the best so far");
}

TEST(Frame, MetricsOfTheLastStepAreThoseThatTheTableMarksAndAreFinite) {
  const auto figures = step_figures({{"kl", 0.5},
                                     {"entropy", 1.5},
                                     {"learning_rate", 1e-4},
                                     {"seconds", 2},
                                     {"gradient_norm", std::nan("")}});
  ASSERT_EQ(figures.size(), 3U);
  EXPECT_EQ(figures[0].name, "entropy");
  EXPECT_EQ(figures[1].name, "kl");
  EXPECT_EQ(figures[1].value, 0.5);
  EXPECT_EQ(figures[2].name, "seconds");
}

}  // namespace
}  // namespace temper::cli
