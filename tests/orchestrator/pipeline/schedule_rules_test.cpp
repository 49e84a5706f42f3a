// The section algorithm.learning_rate_schedule: what `check` refuses.
#include "orchestrator/pipeline/load.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

/// The issues of a run of 100 steps with this schedule and these other keys.
std::string schedule_issues(const std::string& schedule, const std::string& other = "") {
  const LoadedConfig loaded(
      "c.yaml", "steps: 100\nalgorithm: {learning_rate_schedule: " + schedule + other + "}\n", {});
  return render(loaded.issues());
}

TEST(ScheduleRules, AcceptAWarmUpADecayAndBoth) {
  EXPECT_EQ(schedule_issues("{warm_up_steps: 200}"), "");
  EXPECT_EQ(schedule_issues("{decay: linear, end: 0.1}"), "");
  EXPECT_EQ(schedule_issues("{decay: cosine, warm_up_steps: 10, decay_steps: 10}"), "");
}

TEST(ScheduleRules, RefuseKeysOfADecayThatIsNone) {
  const std::string why = "requires `decay: linear` or `cosine`, found none";
  EXPECT_NE(schedule_issues("{decay_steps: 50}").find("decay_steps: " + why), std::string::npos);
  EXPECT_NE(schedule_issues("{end: 0.1}").find("end: " + why), std::string::npos);
}

TEST(ScheduleRules, RefuseADecayThatEndsInTheWarmUp) {
  const std::string limit = "must be at most the step at which the decay ends (";
  EXPECT_NE(schedule_issues("{decay: linear, warm_up_steps: 200}").find(limit + "100), found 200"),
            std::string::npos);
  EXPECT_NE(schedule_issues("{decay: linear, warm_up_steps: 9, decay_steps: 5}").find(limit + "5)"),
            std::string::npos);
  const std::string critic = ", name: ppo_critic, critic: {warm_up_steps: 90}";
  const std::string late = "{decay: linear, warm_up_steps: 20}";
  EXPECT_NE(schedule_issues(late, critic)
                .find(limit + "100), found 20 after the 90 steps of critic.warm_up_steps"),
            std::string::npos)
      << schedule_issues(late, critic);
}

}  // namespace
}  // namespace temper::orchestrator
