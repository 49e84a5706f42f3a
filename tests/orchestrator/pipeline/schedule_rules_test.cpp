// The section algorithm.learning_rate_schedule: what `check` refuses.
#include "orchestrator/pipeline/load.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

/// The issues of a run of 100 steps with this schedule.
std::string issues_of(const std::string& schedule) {
  const LoadedConfig loaded(
      "c.yaml", "steps: 100\nalgorithm: {learning_rate_schedule: " + schedule + "}\n", {});
  return render(loaded.issues());
}

TEST(ScheduleRules, AcceptAWarmUpADecayAndBoth) {
  EXPECT_EQ(issues_of("{warm_up_steps: 200}"), "");
  EXPECT_EQ(issues_of("{decay: linear, end: 0.1}"), "");
  EXPECT_EQ(issues_of("{decay: cosine, warm_up_steps: 10, decay_steps: 10}"), "");
}

TEST(ScheduleRules, RefuseKeysOfADecayThatIsNone) {
  const std::string why = "requires `decay: linear` or `cosine`, found none";
  EXPECT_NE(issues_of("{decay_steps: 50}").find("decay_steps: " + why), std::string::npos);
  EXPECT_NE(issues_of("{end: 0.1}").find("end: " + why), std::string::npos);
}

TEST(ScheduleRules, RefuseADecayThatEndsInTheWarmUp) {
  const std::string limit = "must be at most the step at which the decay ends (";
  EXPECT_NE(issues_of("{decay: linear, warm_up_steps: 200}").find(limit + "100), found 200"),
            std::string::npos);
  EXPECT_NE(issues_of("{decay: linear, warm_up_steps: 9, decay_steps: 5}").find(limit + "5)"),
            std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
