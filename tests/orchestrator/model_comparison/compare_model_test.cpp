// The two processes of a comparison, with shell scripts in their place: what they write, how they
// fail, and that none outlives its deadline.
#include "orchestrator/model_comparison/compare_model.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class CompareModel : public ::testing::Test {
 protected:
  CompareModel() {
    actors::ConfigJson config;
    config.model.vocabulary = 14;
    config.model.context = Tokens(32);
    const auto layout = actors::Layout::make(config.model, 14).value();
    const std::vector<float> weights(static_cast<std::size_t>(layout.size()), 0.5F);
    actors::ModelFolderToWrite what;
    what.config_json = actors::write_config_json(config);
    options_.folder = folder_ / "model";
    fs::create_directory(options_.folder);
    EXPECT_TRUE(actors::write_model_folder(
        options_.folder, what, actors::tensors_to_write(layout, weights)));
    options_.name = "model";
    options_.python = script("python", python(kAnswer));
    options_.worker = script("worker", worker());
  }

  /// Bytes of the logits of all sequences: 1, 2, 7 and 32 tokens, 14 float32 each.
  static constexpr int kBytes = 42 * 14 * 4;
  static constexpr const char* kAnswer =
      R"({"transformers": "5", "torch": "2", "architecture": "X", "vocabulary": 14, )"
      R"("tokenizer_error": "", "tokens": [], "chats": null})";

  /// As `python -m temper.compare MODEL FOLDER`, with all logits 0.
  static std::string python(const std::string& answer, int bytes = kBytes) {
    return fmt::format("touch $4/started; head -c {} /dev/zero >$4/logits.f32; echo '{}' >$4/{}",
                       bytes,
                       answer,
                       kAnswerFile);
  }
  /// As `temper-worker logits --model MODEL --folder FOLDER`, with all logits 0 but perhaps the
  /// first, in the octal form of its four bytes.
  static std::string worker(const std::string& first = "\\000\\000\\000\\000", int bytes = kBytes) {
    return fmt::format("(printf '{}'; head -c {} /dev/zero) >$5/logits.f32", first, bytes - 4);
  }

  std::string script(const std::string& name, const std::string& content) {
    const fs::path file = folder_ / name;
    EXPECT_TRUE(write_file_atomically(file, "#!/bin/sh\n" + content + "\n"));
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
  }
  void expect_error(ErrorCode code, const std::vector<std::string>& words) {
    const auto compared = compare_model(options_);
    ASSERT_FALSE(compared);
    EXPECT_EQ(compared.error().code, code) << compared.error().context;
    for (const std::string& word : words)
      EXPECT_NE(compared.error().context.find(word), std::string::npos)
          << compared.error().context << "\nexpected: " << word;
  }

  const test::TemporaryFolder folder_;
  CompareOptions options_;
};

TEST_F(CompareModel, AgreesIfBothComputeTheSame) {
  const auto compared = compare_model(options_);
  ASSERT_TRUE(compared) << compared.error().context;
  EXPECT_TRUE(compared->agrees);
  EXPECT_EQ(compared->architecture, "X");
  ASSERT_EQ(compared->sequences.size(), 4U);
  EXPECT_EQ(compared->sequences.back().tokens, 32);
  EXPECT_EQ(compared->sequences.back().same_best, 32);
  EXPECT_EQ(compared->tokenizer.note, "none");
}

TEST_F(CompareModel, DiffersIfOneLogitDoes) {
  options_.worker = script("worker", worker("\\000\\000\\000\\100"));  // 2.0
  const auto compared = compare_model(options_);
  ASSERT_TRUE(compared) << compared.error().context;
  EXPECT_FALSE(compared->agrees);
  EXPECT_GT(compared->sequences.front().largest, 1);
  EXPECT_EQ(compared->sequences.back().largest, 0);
}

TEST_F(CompareModel, TellsTheProcessesWhatToCompute) {
  options_.ignore = {"lab_setting"};
  options_.python = script("python",
                           fmt::format("cp $4/{} {}; echo \"$@\" >{}; {}",
                                       kRequestFile,
                                       (folder_ / kRequestFile).string(),
                                       (folder_ / "words").string(),
                                       python(kAnswer)));
  options_.worker =
      script("worker", fmt::format("echo \"$@\" >>{}; {}", (folder_ / "words").string(), worker()));
  ASSERT_TRUE(compare_model(options_));
  const auto request = read_comparison_request(folder_.path().string());
  ASSERT_TRUE(request) << request.error().context;
  EXPECT_EQ(request->sequences, comparison_sequences(14, Tokens(32)));
  const std::string words = read_file(folder_ / "words").value();
  EXPECT_TRUE(words.starts_with("-m temper.compare " + options_.folder.string())) << words;
  EXPECT_NE(words.find("--ignore lab_setting"), std::string::npos) << words;
}

TEST_F(CompareModel, NamesTheNextStepIfAPackageOrTheInterpreterIsMissing) {
  options_.python = "/no/such/python";
  expect_error(ErrorCode::NotFound, {"/no/such/python", "TEMPER_PYTHON"});
  options_.python = script("python", "echo 'No module named temper' >&2; exit 1");
  expect_error(ErrorCode::NotFound,
               {"cannot import the temper package: No module named temper",
                "TEMPER_PYTHON",
                "pip install ./python"});
  options_.python = script("python", "kill -9 $$");
  expect_error(ErrorCode::NotFound, {"cannot import the temper package", "killed by signal 9"});
  options_.python =
      script("python", "touch $4/started; echo 'run pip install transformers' >&2; exit 78");
  expect_error(ErrorCode::NotFound, {"run pip install transformers"});
}

TEST_F(CompareModel, SaysThatItNeedsLibtorch) {
  options_.worker = TEMPER_WORKER;
  expect_error(ErrorCode::Unsupported, {"libtorch", "-DTEMPER_TORCH=ON"});
}

TEST_F(CompareModel, ReportsAProcessThatFails) {
  options_.worker = script("worker", "echo 'no memory' >&2; exit 1");
  expect_error(ErrorCode::Internal, {"temper-worker logits ended with exit code 1; no memory"});
  options_.python = script("python", "touch $4/started; echo 'ValueError: shape' >&2; exit 1");
  expect_error(ErrorCode::Internal,
               {"-m temper.compare ended with exit code 1; ValueError: shape"});
  options_.python = script("python", "touch $4/started; kill -9 $$");
  expect_error(ErrorCode::Internal, {"killed by signal 9"});
}

TEST_F(CompareModel, RejectsWhatAProcessMustNotReport) {
  options_.python = script("python", "touch $4/started");
  expect_error(ErrorCode::Internal, {"ended without a result", kAnswerFile});
  options_.python = script("python", python("[]"));
  expect_error(ErrorCode::Internal, {"invalid answer", "expected a JSON object, found array"});
  options_.python = script("python", python(kAnswer, kBytes - 1));
  expect_error(ErrorCode::Internal, {"invalid answer of temper.compare: logits.f32"});
  options_.python = script("python", python(kAnswer));
  options_.worker = script("worker", worker("\\000\\000\\300\\177"));  // NaN
  expect_error(ErrorCode::Internal, {"invalid answer of temper-worker logits", "after token 0"});
  options_.worker = script("worker", worker("\\000\\000\\000\\000", kBytes + 4));
  expect_error(ErrorCode::Internal, {"invalid answer of temper-worker logits", "bytes"});
}

/// True once the process of this file is gone, or waits only for its parent to notice.
bool has_ended(const fs::path& pid_file) {
  const std::string pid = read_file(pid_file).value_or("0");
  const auto status = read_file(fmt::format("/proc/{}/stat", std::stoi(pid)));
  return !status || status->find(") Z ") != std::string::npos;
}

TEST_F(CompareModel, KillsAProcessAndItsChildrenAfterTheDeadline) {
  const fs::path child = folder_ / "child";
  options_.python = script(
      "python", fmt::format("touch $4/started; sleep 300 & echo $! >{}; wait", child.string()));
  options_.deadline = 300ms;
  const auto begin = std::chrono::steady_clock::now();
  expect_error(ErrorCode::Timeout, {"temper.compare was not done within 300", "was killed"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  for (int i = 0; i < 100 && !has_ended(child); ++i)
    std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(has_ended(child));
}

TEST_F(CompareModel, RejectsAFolderThatTemperCannotRunBeforeItStartsAnything) {
  fs::remove(options_.folder / "model.safetensors");
  options_.python = script("python", "touch " + (folder_ / "called").string());
  expect_error(ErrorCode::NotFound, {"model"});
  EXPECT_FALSE(fs::exists(folder_ / "called"));
}

}  // namespace
}  // namespace temper::orchestrator
