// The sources of a task: what `check` refuses, with place, found, expected and next step.
#include "orchestrator/pipeline/source_rules.hpp"

#include "orchestrator/pipeline/load.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

std::string source_issues(const std::string& task) {
  return render(LoadedConfig("c.yaml", "task: " + task + "\n", {}).issues());
}

void expect_source_issue(const std::string& task, const std::string& expected) {
  const std::string found = source_issues(task);
  EXPECT_NE(found.find(expected), std::string::npos)
      << "expected " << expected << "\nfound " << found;
}

TEST(SourceRules, AcceptWeightsAndSchedules) {
  EXPECT_EQ(source_issues("{sources: {one: {digits: 1, weight: 3}, three: {digits: 3}}}"), "");
  EXPECT_EQ(source_issues("{sources: {one: {digits: 1, schedule: {0: 1, 50: 0}}, "
                          "two: {schedule: {0: 0, 50: 1}}}, set_aside: {easy: 1, hopeless: 0}}"),
            "");
  EXPECT_EQ(source_issues("{kind: jsonl, sources: {a: {path: a.jsonl}, b: {path: b.jsonl}}}"), "");
}

TEST(SourceRules, NameTheKeyWhatWasFoundAndWhatIsExpected) {
  expect_source_issue("{kind: jsonl, sources: {a: {weight: 2}}}",
                      "task.sources.a.path: required by `task.kind: jsonl`");
  expect_source_issue("{kind: jsonl, path: a.jsonl, sources: {a: {path: a.jsonl}}}",
                      "task.path: excludes `task.sources`; make it one of the sources");
  expect_source_issue("{sources: {a b: {digits: 1}}}",
                      "must be 1 to 64 letters, digits, '-' or '_'");
  expect_source_issue("{sources: {a: {path: a.jsonl}}}",
                      "task.sources.a.path: requires `task.kind: jsonl`");
  expect_source_issue("{kind: jsonl, sources: {a: {path: a.jsonl, digits: 2}}}",
                      "task.sources.a.digits: requires `task.kind: addition`; remove it");
  expect_source_issue(
      "{sources: {a: {weight: 2, schedule: {0: 1}}}}",
      "task.sources.a.weight: excludes `schedule`, which has the weight of every step");
  expect_source_issue("{sources: {a: {schedule: {0: -1, 5: 1}}}}", "must be 0 to 1e+06, found -1");
  expect_source_issue("{sources: {a: {schedule: [1, 2]}}}", "task.sources.a.schedule");
  expect_source_issue("{sources: {a: {schedule: {late: 2}}}}", "task.sources.a.schedule");
  expect_source_issue("{sources: {a: {digits: 12}}}",
                      "task.sources.a.digits: must be 1 to 9, found 12");
  expect_source_issue("{set_aside: {easy: 1.5}}", "task.set_aside.easy: must be 0 to 1, found 1.5");
  expect_source_issue(
      "{set_aside: {easy: 0.2, hopeless: 0.5}}",
      "task.set_aside.easy: must be above task.set_aside.hopeless (0.5), found 0.2");
}

TEST(SourceRules, NameTheFirstStepWithoutAnyWeight) {
  expect_source_issue("{sources: {a: {weight: 0}, b: {weight: 0}}}",
                      "but all weights are 0 at step 0");
  expect_source_issue("{sources: {a: {schedule: {0: 1, 40: 0}}, b: {schedule: {40: 0, 60: 1}}}}",
                      "but all weights are 0 at step 40");
  expect_source_issue("{sources: {a: {schedule: {0: 1, 40: 0}}}}",
                      "but all weights are 0 at step 40");
  EXPECT_EQ(source_issues("{sources: {a: {schedule: {0: 1, 400: 0}}}}"), "")
      << "the run has 100 steps";
}

}  // namespace
}  // namespace temper::orchestrator
