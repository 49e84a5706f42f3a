// `temper check` on the files, programs and Python names in a configuration.
#include "cli/run/check_command.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/start/python_imports.hpp"
#include "orchestrator/start/verifier_needs.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

struct Issue {
  std::string location;
  std::string key;
  std::string message;
};

class CheckCommand : public ::testing::Test {
 protected:
  /// What is wrong with these lines of a configuration, whose task is rows.jsonl unless they say
  /// otherwise. Empty: nothing.
  std::vector<Issue> issues(const std::string& yaml) {
    const fs::path file = folder_ / "my.yaml";
    EXPECT_TRUE(write_file_atomically(file, yaml));
    CheckOptions options{.config = file.string(), .sets = {}, .format = CheckOptions::Format::Json};
    std::ostringstream out, err;
    const int code = run_check(options, out, err);
    const nlohmann::json report = parse_json(out.str());
    std::vector<Issue> found;
    for (const auto& issue : report.at("issues")) {
      found.push_back({issue.at("location").get<std::string>(),
                       issue.at("key").get<std::string>(),
                       issue.at("message").get<std::string>()});
    }
    EXPECT_EQ(code, found.empty() ? 0 : 2);
    return found;
  }
  std::string rows(const std::string& content) {
    const fs::path file = folder_ / "rows.jsonl";
    EXPECT_TRUE(write_file_atomically(file, content));
    return file.string();
  }
  std::string script(const std::string& name, const std::string& content) {
    const fs::path file = folder_ / name;
    EXPECT_TRUE(write_file_atomically(file, "#!/bin/sh\n" + content + "\n"));
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
  }

  static constexpr const char* kSmall =
      "name: a\nmodel: {hidden: 32, layers: 1, heads: 2, kv_heads: 1, context: 96}\n"
      "placement: {mode: colocated, cards: 1}\nsampling: {max_new_tokens: 8}\n"
      "algorithm: {groups_per_update: 2, responses_per_group: 2, minibatches: 1}\n";
  static constexpr const char* kGoodRow = "{\"prompt\": \"1+2=\", \"answer\": \"3\"}\n";
  const test::TemporaryFolder folder_;
};

TEST_F(CheckCommand, NamesTheKeyOfABadDataFileAndTheLineInIt) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {"\n\n \n", "blank"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"},
      {"oops\n", "rows.jsonl:1: "},
      {std::string(kGoodRow) + "{\"prompt\": \"a\"}\n", "rows.jsonl:2: "},
      {std::string(kGoodRow) + "{\"prompt\": \" \", \"answer\": \"1\"}\n", "rows.jsonl:2: "},
      {std::string(kGoodRow) + "{\"prompt\": \"a\", \"answer\": null}\n", "rows.jsonl:2: "},
      {std::string(kGoodRow) + "{\"prompt\": \"a\", \"answer\": 3}\n", "rows.jsonl:2: "},
      {std::string(kGoodRow) + "{\"prompt\": \"a\", \"answer\": \"\"}\n", "rows.jsonl:2: "},
      {std::string(kGoodRow) + "{\"prompt\": \"a\", \"answer\": \"seven\"}\n", "rows.jsonl:2: "},
      {std::string(kGoodRow) + "{\"messages\": [], \"answer\": \"1\"}\n", "task.template: chat"},
      {std::string(kGoodRow) + "[1]\n", "rows.jsonl:2: "},
      {std::string(kGoodRow) + "{\"prompt\": \"a\", \"answer\": \"\xff\"}\n", "rows.jsonl:2: "},
  };
  for (const auto& [content, said] : cases) {
    const auto found = issues(kSmall + fmt::format("verifier: {{kind: numeric}}\n"
                                                   "task: {{kind: jsonl, held_out: 0, path: {}}}\n",
                                                   rows(content)));
    ASSERT_EQ(found.size(), 1U) << content;
    EXPECT_EQ(found[0].key, "task.path") << content;
    EXPECT_TRUE(found[0].location.ends_with("my.yaml:7")) << found[0].location;
    EXPECT_NE(found[0].message.find("rows.jsonl"), std::string::npos) << found[0].message;
    EXPECT_NE(found[0].message.find(said), std::string::npos) << found[0].message;
  }
  const auto missing =
      issues(kSmall + std::string("task: {kind: jsonl, held_out: 0, path: none.jsonl}\n"));
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].key, "task.path");
}

TEST_F(CheckCommand, GivesEachBadRowALineOfItsOwn) {
  const auto found =
      issues(kSmall + fmt::format("task: {{kind: jsonl, held_out: 0, path: {}}}\n",
                                  rows("oops\n{\"prompt\": \"a\", \"answer\": \"b\"}\n[1]\n")));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].message.find("rows.jsonl:1: "), std::string::npos);
  EXPECT_NE(found[1].message.find("rows.jsonl:3: "), std::string::npos);
}

TEST_F(CheckCommand, FindsTheScriptOfAnInterpreter) {
  const std::string here = script("judge.py", "true");
  const std::string task =
      fmt::format("task: {{kind: jsonl, held_out: 0, path: {}}}\n", rows(kGoodRow));
  const auto blamed = [&](const std::string& command) {
    const auto found =
        issues(kSmall + task + "verifier: {kind: command, command: [" + command + "]}\n");
    EXPECT_TRUE(found.empty() || found[0].key == "verifier.command") << command;
    return !found.empty();
  };
  for (const char* const command : {"python3, none.py",
                                    "python3, none",
                                    "/usr/bin/python3, folder/none.py",
                                    "sh, none.sh",
                                    "bash, none.sh",
                                    "perl, none.pl",
                                    "no-such-program",
                                    "no-such-program, x",
                                    "/no/such/program"})
    EXPECT_TRUE(blamed(command)) << command;
  for (const std::string& command : {"sh, " + here,
                                     std::string("sh, -c, none.sh"),
                                     std::string("sh, -e, none.sh"),
                                     std::string("cat, none.txt"),
                                     std::string("sh"),
                                     here + ", none.py"})
    EXPECT_FALSE(blamed(command)) << command;
}

TEST_F(CheckCommand, LooksForTheKeyOfAJudge) {
  const auto found = [&] {
    return orchestrator::missing_for_verifier(
        orchestrator::LoadedConfig("c.yaml",
                                   "verifier: {kind: judge, judge: {key_variable: "
                                   "TEMPER_TEST_KEY}}\n",
                                   {})
            .config());
  };
  ::unsetenv("TEMPER_TEST_KEY");
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(found()[0].keys[0], "verifier.judge.key_variable");
  EXPECT_NE(found()[0].message.find("TEMPER_TEST_KEY is not set"), std::string::npos);
  ::setenv("TEMPER_TEST_KEY", "", 1);
  EXPECT_NE(found()[0].message.find("is empty"), std::string::npos);
  ::setenv("TEMPER_TEST_KEY", "sk-1", 1);
  EXPECT_TRUE(found().empty());
  ::unsetenv("TEMPER_TEST_KEY");
}

TEST_F(CheckCommand, OpensTheFolderOfAClassifier) {
  const auto problem = [&](const std::string& config, const std::string& label) {
    std::ofstream(folder_ / "config.json") << config;
    orchestrator::PipelineConfig run;
    run.verifier.kind = actors::VerifierKind::Model;
    run.verifier.model.path = folder_.path().string();
    run.verifier.model.label = label;
    const auto found = orchestrator::missing_for_verifier(run);
    return found.empty() ? "" : found[0].keys[0] + ": " + found[0].message;
  };
  const std::string one = R"({"architectures": ["XForSequenceClassification"], "num_labels": 1})";
  const std::string two = R"({"architectures": ["XForSequenceClassification"],
                              "id2label": {"0": "bad", "1": "good"}})";
  EXPECT_EQ(problem(one, ""), "");
  EXPECT_EQ(problem(two, "good"), "");
  EXPECT_NE(problem(two, "").find("model.label: required, because the classifier has 2 outputs: "
                                  "\"bad\", \"good\""),
            std::string::npos);
  EXPECT_NE(problem(two, "fine").find("found \"fine\""), std::string::npos);
  EXPECT_NE(problem(R"({"architectures": ["XForCausalLM"]})", "").find("of a sequence classifier"),
            std::string::npos);
  EXPECT_NE(problem("oops", "").find("model.path: "), std::string::npos);
}

/// An interpreter that gives the answers of a script in the place of `python -m temper.check`.
class CheckImports : public CheckCommand {
 protected:
  void SetUp() override { ::unsetenv("TEMPER_PYTHON"); }
  void TearDown() override { ::unsetenv("TEMPER_PYTHON"); }

  /// `$3` is the report.
  std::vector<Issue> with(const std::string& interpreter, const std::string& verifier) {
    ::setenv("TEMPER_PYTHON", script("python", interpreter).c_str(), 1);
    return issues(kSmall +
                  fmt::format("task: {{kind: jsonl, held_out: 0, path: {}}}\n", rows(kGoodRow)) +
                  verifier);
  }
  static constexpr const char* kRight =
      "verifier: {kind: python, function: \"my_rewards:right\"}\n";
};

TEST_F(CheckImports, TakesWhatTheInterpreterSaysOfEachName) {
  EXPECT_EQ(with("printf 'ready\\n{\"key\": \"x\", \"message\": \"\"}\\n' >$3", kRight).size(), 0U);
  const auto found =
      with("printf 'ready\\n{\"key\": \"x\", \"message\": \"no such name\"}\\n' >$3", kRight);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "verifier.function");
  EXPECT_TRUE(found[0].location.ends_with("my.yaml:7")) << found[0].location;
  EXPECT_NE(found[0].message.find("no such name"), std::string::npos);
}

TEST_F(CheckImports, AsksOnceForAllThatARoleNames) {
  const auto found =
      with("echo once >>" + (folder_ / "calls").string() +
               "; printf 'ready\\n{\"message\": \"\"}\\n{\"message\": \"bad\"}\\n' >$3",
           "verifier: {kind: python, functions: {\"a:f\": 1, \"b:g\": 0.5}}\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "verifier.functions");
  EXPECT_EQ(read_file(folder_ / "calls").value(), "once\n");
}

TEST_F(CheckImports, NamesTheWayOutOfAnInterpreterWithoutThePackage) {
  const auto found = with("echo 'No module named temper.check' >&2; exit 1", kRight);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "verifier.function");
  for (const char* const word :
       {"No module named temper", "TEMPER_PYTHON", "pip install", "reward.engine.python"})
    EXPECT_NE(found[0].message.find(word), std::string::npos) << found[0].message;
}

TEST_F(CheckImports, SaysHowAnInterpreterEndedThatSaysNothing) {
  const auto found = with("kill -9 $$", kRight);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].message.find("killed by signal 9"), std::string::npos) << found[0].message;
}

TEST_F(CheckImports, BlamesTheNameWhoseImportEndsTheInterpreter) {
  const auto found = with("echo ready >$3; exit 3", kRight);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "verifier.function");
  EXPECT_NE(found[0].message.find("exit code 3"), std::string::npos) << found[0].message;
}

TEST_F(CheckImports, RefusesNamesThatAreNoneWithoutStartingAnything) {
  for (const char* const name : {"right", "right:", ":right", ":", "a.b"}) {
    const auto found = with("echo x >" + (folder_ / "started").string(),
                            fmt::format("verifier: {{kind: python, function: \"{}\"}}\n", name));
    ASSERT_EQ(found.size(), 1U) << name;
    EXPECT_EQ(found[0].key, "verifier.function") << name;
    EXPECT_FALSE(fs::exists(folder_ / "started")) << name;
  }
}

TEST(BrokenImports, AreNotLookedForWhereOthersStartTheWorker) {
  orchestrator::PipelineConfig config;
  config.verifier.kind = actors::VerifierKind::Python;
  config.verifier.function = "no_such_module_anywhere:f";
  config.reward.launch = orchestrator::LaunchKind::Attach;
  EXPECT_TRUE(orchestrator::broken_imports(config).empty());
}

}  // namespace
}  // namespace temper::cli
