// `temper init` and `temper doctor`.
#include "cli/run/setup_commands.hpp"

#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/run/evaluation_source.hpp"
#include "orchestrator/start/doctor.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace temper::cli {
namespace {

TEST(Init, WritesAConfigurationThatIsGoodAsItIs) {
  for (const std::size_t cores : {1U, 2U, 64U}) {
    const std::string yaml = starter_config({.file = "my-task.yaml"}, cores);
    const orchestrator::LoadedConfig loaded("my-task.yaml", yaml, {});
    EXPECT_EQ(render(loaded.issues()), "") << cores;
    EXPECT_EQ(loaded.config().name, "my-task");
    EXPECT_EQ(loaded.config().task.path, "data/train.jsonl");
  }
}

TEST(Init, NamesTheTaskAndTheModelThatItWasGiven) {
  const std::string yaml =
      starter_config({.file = "a.yaml", .task = "my.jsonl", .model = "models/mine"}, 2);
  EXPECT_NE(yaml.find("path: my.jsonl"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("path: models/mine"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("pretrain"), std::string::npos) << yaml;
}

TEST(Init, AsksNoMoreHeldOutProblemsThanTheFileHas) {
  const test::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += fmt::format("{{\"prompt\": \"{0}+1=\", \"answer\": \"{1}\"}}\n", i, i + 1);
  ASSERT_TRUE(write_file_atomically(folder / "few.jsonl", lines));
  const std::string yaml =
      starter_config({.file = "a.yaml", .task = (folder / "few.jsonl").string()}, 2);
  const orchestrator::LoadedConfig loaded("a.yaml", yaml, {});
  ASSERT_EQ(render(loaded.issues()), "");
  EXPECT_GT(loaded.config().evaluation.problems, 0);
  EXPECT_TRUE(orchestrator::make_evaluation_source(loaded.config(), {}));
}

TEST(Init, HoldsOutEnoughProblemsOfAnyFileThatHasThem) {
  const test::TemporaryFolder folder;
  for (const int rows : {2, 10, 50, 100, 180, 200, 220, 400, 500, 1000, 5000}) {
    std::string lines;
    for (int i = 0; i < rows; ++i)
      lines += fmt::format("{{\"prompt\": \"{0}+1=\", \"answer\": \"{1}\"}}\n", i, i + 1);
    ASSERT_TRUE(write_file_atomically(folder / "rows.jsonl", lines));
    const std::string yaml =
        starter_config({.file = "a.yaml", .task = (folder / "rows.jsonl").string()}, 2);
    const orchestrator::LoadedConfig loaded("a.yaml", yaml, {});
    ASSERT_EQ(render(loaded.issues()), "");
    const orchestrator::PipelineConfig& config = loaded.config();
    EXPECT_LE(config.task.held_out, 0.35) << rows;
    if (rows >= 200) {
      EXPECT_GE(config.evaluation.problems, 50) << rows;
    }
    if (rows >= 1000) {
      EXPECT_EQ(config.task.held_out, 0.1) << "a large file keeps its rows for training";
    }
    if (rows > 2) {
      EXPECT_TRUE(orchestrator::make_evaluation_source(config, {})) << rows;
    }
  }
}

TEST(Init, ASmallNetworkHasTheRateOfOneAndATrainedModelThatOfATrainedModel) {
  const auto config = [](const InitOptions& options) {
    const orchestrator::LoadedConfig loaded("a.yaml", starter_config(options, 2), {});
    return loaded.config();
  };
  const auto small = config({.file = "a.yaml"});
  EXPECT_EQ(small.algorithm.learning_rate, 4e-4);
  EXPECT_EQ(small.algorithm.minibatches, 1);
  const auto trained = config({.file = "a.yaml", .model = "models/mine"});
  EXPECT_EQ(trained.algorithm.learning_rate, 1e-5);
}

TEST(Init, AKnownModelHasItsShippedConfiguration) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::setenv("TEMPER_CACHE", folder.path().c_str(), 1), 0);
  ASSERT_TRUE(make_folder(folder / "smollm2-0.1.2-v1"));  // As if it had been converted.
  std::ostringstream out, err;
  EXPECT_EQ(run_init({.file = folder / "sums.yaml", .model = "smollm2"}, out, err), 0) << err.str();
  ::unsetenv("TEMPER_CACHE");
  const std::string yaml = read_file(folder / "sums.yaml").value();
  const std::vector<std::string> without_model{"model.path=''"};
  const orchestrator::LoadedConfig loaded("sums.yaml", yaml, without_model);
  EXPECT_EQ(render(loaded.issues()), "");
  EXPECT_EQ(loaded.config().name, "sums");
  EXPECT_TRUE(std::filesystem::exists(loaded.config().task.path)) << loaded.config().task.path;
  EXPECT_NE(yaml.find("path: smollm2"), std::string::npos) << yaml;
}

TEST(Init, NamesAModelFileThatIsMissing) {
  const test::TemporaryFolder folder;
  std::ostringstream out, err;
  EXPECT_NE(run_init({.file = folder / "a.yaml", .model = "none.gguf"}, out, err), 0);
  EXPECT_NE(err.str().find("--model: none.gguf does not exist"), std::string::npos) << err.str();
}

TEST(Init, WarnsOfProblemsThatCannotBeRead) {
  const test::TemporaryFolder folder;
  std::ostringstream out, err;
  EXPECT_EQ(run_init({.file = folder / "a.yaml", .task = folder / "none.jsonl"}, out, err), 0);
  EXPECT_NE(err.str().find("none.jsonl does not exist"), std::string::npos) << err.str();
  ASSERT_TRUE(
      write_file_atomically(folder / "some.jsonl", "{\"prompt\": \"1+1=\", \"anser\": \"2\"}\n"));
  err.str("");
  EXPECT_EQ(run_init({.file = folder / "b.yaml", .task = folder / "some.jsonl"}, out, err), 0);
  EXPECT_NE(err.str().find("some.jsonl:1: `answer` is missing; found `anser`, `prompt`"),
            std::string::npos)
      << err.str();
}

TEST(Init, WarnsOnlyOfTheRowsThatAreWrong) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "words.jsonl",
                                    "{\"prompt\": \"p\", \"answer\": \"yes\"}\n"
                                    "{\"prompt\": \"q\", \"anser\": \"no\"}\n"));
  std::ostringstream out, err;
  EXPECT_EQ(run_init({.file = folder / "a.yaml", .task = folder / "words.jsonl"}, out, err), 0);
  EXPECT_NE(err.str().find("words.jsonl:2: `answer` is missing"), std::string::npos) << err.str();
  EXPECT_EQ(err.str().find("words.jsonl:1"), std::string::npos) << err.str();
}

TEST(Init, ChoosesTheVerifierByTheAnswers) {
  const test::TemporaryFolder folder;
  const auto verifier_of = [&](const std::vector<std::string>& answers) {
    std::string lines;
    for (std::size_t i = 0; i < 40; ++i) {
      lines += fmt::format(
          "{{\"prompt\": \"p{}\", \"answer\": \"{}\"}}\n", i, answers[i % answers.size()]);
    }
    EXPECT_TRUE(write_file_atomically(folder / "rows.jsonl", lines));
    const orchestrator::LoadedConfig loaded(
        "a.yaml", starter_config({.file = "a.yaml", .task = folder / "rows.jsonl"}, 2), {});
    EXPECT_EQ(render(loaded.issues()), "");
    return loaded.config().verifier.kind;
  };
  using enum actors::VerifierKind;
  for (const auto& answers : std::vector<std::vector<std::string>>{
           {"12"}, {"-3.5"}, {"1", "2", "seven"}, {"#### 18"}, {"x = 4"}})
    EXPECT_EQ(verifier_of(answers), Numeric) << answers.back();
  for (const auto& answers : std::vector<std::vector<std::string>>{
           {"odd", "even"}, {"bedg"}, {"Paris"}, {"yes", "no", "1"}, {"c"}})
    EXPECT_EQ(verifier_of(answers), Exact) << answers.back();
}

TEST(Init, OverwritesNothing) {
  const test::TemporaryFolder folder;
  std::ostringstream out, err;
  const InitOptions options{.file = folder / "my.yaml"};
  EXPECT_EQ(run_init(options, out, err), 0) << err.str();
  const std::string before = read_file(folder / "my.yaml").value();
  EXPECT_EQ(run_init(options, out, err), 2);
  EXPECT_NE(err.str().find("already exists"), std::string::npos) << err.str();
  EXPECT_EQ(read_file(folder / "my.yaml").value(), before);
}

TEST(Doctor, SaysWhatIsMissingAndWhatToDo) {
  const test::TemporaryFolder empty;
  const auto findings = orchestrator::examine_machine(empty.path(), empty.path());
  const auto of = [&](std::string_view what) {
    return *std::ranges::find(findings, what, &orchestrator::Finding::what);
  };
  using State = orchestrator::Finding::State;
  EXPECT_EQ(of("temper-worker").state, State::Missing) << "every run needs it";
  EXPECT_EQ(of("temper-study").state, State::Note);
  EXPECT_EQ(of("configurations").state, State::Note);
  EXPECT_EQ(of("memory").state, State::Fine);
  for (const orchestrator::Finding& f : findings)
    EXPECT_EQ(f.advice.empty(), f.state == State::Fine) << f.what;
}

}  // namespace
}  // namespace temper::cli
