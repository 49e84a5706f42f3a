#include "orchestrator/run/evaluation_source.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace temper::orchestrator {
namespace {

TEST(EvaluationSource, HasTheProblemsThatTheTaskHoldsOut) {
  PipelineConfig config;
  config.task.digits = 2;
  config.evaluation.problems = 50;
  const auto source = make_evaluation_source(config, {});
  ASSERT_TRUE(source) << source.error().context;
  const auto task = actors::make_prompt_source(config.task, config.seed).value();
  EXPECT_EQ((*source)->held_out(7).prompt, task->held_out(7).prompt);
}

TEST(EvaluationSource, HasEveryProblemOfAFileOfItsOwn) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "test.jsonl") << R"({"prompt":"1+1=","answer":"2"})"
                                       << "\n"
                                       << R"({"prompt":"2+2=","answer":"4"})"
                                       << "\n";
  PipelineConfig config;
  config.evaluation.path = folder / "test.jsonl";
  config.evaluation.problems = 2;
  const auto source = make_evaluation_source(config, {});
  ASSERT_TRUE(source) << source.error().context;
  EXPECT_EQ((*source)->held_out_size(), 2U);
}

TEST(EvaluationSource, OfTooFewProblemsNamesTheKeyAndWhatToDo) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "test.jsonl") << R"({"prompt":"1+1=","answer":"2"})"
                                       << "\n";
  PipelineConfig config;
  config.evaluation.path = folder / "test.jsonl";
  const auto few = make_evaluation_source(config, {});
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().context.find("evaluation.problems is 100, but"), std::string::npos)
      << few.error().context;
  EXPECT_NE(few.error().context.find("has 1; set it to at most 1"), std::string::npos)
      << few.error().context;
  config.evaluation.path.clear();
  config.task.held_out = 0;
  EXPECT_NE(make_evaluation_source(config, {}).error().context.find("needs a larger task.held_out"),
            std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
