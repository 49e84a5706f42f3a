#include "orchestrator/run/evaluation_source.hpp"

#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

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

struct Problems {
  const char* name;
  int lines;        // of the file
  double held_out;  // task.held_out; 0: the whole file is evaluation.path
  int more;         // problems asked for, beyond those there are
};

class EvaluationProblems : public testing::TestWithParam<Problems> {};

TEST_P(EvaluationProblems, AreProvidedOrRefusedWithTheirNumber) {
  const Problems& p = GetParam();
  const test::TemporaryFolder folder;
  std::ofstream file(folder / "rows.jsonl");
  for (int i = 0; i < p.lines; ++i)
    file << fmt::format(R"({{"prompt":"{}+1=","answer":"{}"}})", i, i + 1) << "\n";
  file.close();
  PipelineConfig config;
  config.verifier.kind = actors::VerifierKind::Exact;
  (p.held_out > 0 ? config.task.path : config.evaluation.path) = folder / "rows.jsonl";
  if (p.held_out > 0) {
    config.task.kind = actors::TaskKind::Jsonl;
    config.task.held_out = p.held_out;
  }
  config.evaluation.problems = 1;
  const std::uint64_t there = make_evaluation_source(config, {}).value()->held_out_size();
  config.evaluation.problems = static_cast<std::int32_t>(there) + p.more;
  const auto source = make_evaluation_source(config, {});
  if (p.more <= 0) {
    ASSERT_TRUE(source) << source.error().context;
    EXPECT_EQ((*source)->held_out_size(), there);
    return;
  }
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::InvalidInput);
  const std::string& text = source.error().context;
  for (const std::string& part :
       {fmt::format("evaluation.problems is {}", config.evaluation.problems),
        fmt::format("at most {}", there),
        std::string(p.held_out > 0 ? "task.held_out" : "rows.jsonl")})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in: " << text;
}

INSTANTIATE_TEST_SUITE_P(Of,
                         EvaluationProblems,
                         testing::Values(Problems{"all_of_a_file", 3, 0, 0},
                                         Problems{"the_only_one", 1, 0, 0},
                                         Problems{"one_more_than_a_file", 3, 0, 1},
                                         Problems{"two_of_one", 1, 0, 1},
                                         Problems{"many_of_a_file", 3, 0, 1'000'000'000},
                                         Problems{"all_held_out", 200, 0.5, 0},
                                         Problems{"fewer_than_held_out", 200, 0.5, -7},
                                         Problems{"one_more_than_held_out", 200, 0.5, 1},
                                         Problems{"all_of_a_tenth", 200, 0.1, 0},
                                         Problems{"one_more_than_a_tenth", 200, 0.1, 1},
                                         Problems{"many_of_a_tenth", 200, 0.1, 1'000'000'000}),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace temper::orchestrator
