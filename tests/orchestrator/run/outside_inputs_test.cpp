#include "orchestrator/run/outside_inputs.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace temper::orchestrator {
namespace {

class OutsideInputs : public ::testing::Test {
 protected:
  OutsideInputs() {
    config.task.kind = actors::TaskKind::Jsonl;
    config.task.sources["math"].path = write("math.jsonl", "seven");
    config.task.sources["code"].path = write("code.jsonl", "eight");
    std::filesystem::create_directory(folder / "teacher");
    write("teacher/config.json", "{}");
    write("teacher/model.safetensors", "weights");
    config.reference.model = (folder / "teacher").string();
    config.evaluation.every = 5;
    config.evaluation.path = write("test.jsonl", "nine");
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  }
  /// What a resume says after the change; empty: nothing.
  std::string said_after(const std::string& name, const std::string& text) {
    const auto recorded = digest_outside_inputs(config).value();
    write(name, text);
    const Status checked = check_outside_inputs(config, recorded);
    return checked ? std::string() : checked.error().context;
  }

  const test::TemporaryFolder folder;
  PipelineConfig config;
};

TEST_F(OutsideInputs, AreEachFileOfProblemsAndTheTeacher) {
  const auto digests = digest_outside_inputs(config).value();
  std::vector<std::string> keys;
  keys.reserve(digests.size());
  for (const auto& [key, digest] : digests)
    keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"evaluation.path",
                                      "reference.model",
                                      "task.sources.code.path",
                                      "task.sources.math.path"}));
  EXPECT_TRUE(check_outside_inputs(config, digests));
}

TEST_F(OutsideInputs, AreTheModelsOfAllTeachers) {
  config.reference.teachers["a"].model = std::exchange(config.reference.model, "");
  std::filesystem::create_directory(folder / "other");
  write("other/model.safetensors", "weights");
  config.reference.teachers["b"].model = (folder / "other").string();
  const auto digests = digest_outside_inputs(config).value();
  EXPECT_TRUE(digests.contains("reference.teachers.a.model"));
  EXPECT_NE(
      said_after("other/model.safetensors", "other weights").find("reference.teachers.b.model: "),
      std::string::npos);
}

TEST_F(OutsideInputs, AreNoneForAddition) {
  EXPECT_TRUE(digest_outside_inputs(PipelineConfig{}).value().empty());
}

TEST_F(OutsideInputs, NameAFileThatWasEditedAtTheSameSize) {
  EXPECT_EQ(said_after("math.jsonl", "Seven"),
            "task.sources.math.path: " + config.task.sources["math"].path +
                " has changed since the run started; restore it, or start a new run with --from");
  EXPECT_NE(said_after("test.jsonl", "ten").find("evaluation.path: "), std::string::npos);
}

TEST_F(OutsideInputs, NameATeacherThatWasReplaced) {
  EXPECT_NE(said_after("teacher/model.safetensors", "WEIGHTS").find("reference.model: "),
            std::string::npos);
  EXPECT_NE(said_after("teacher/more.safetensors", "").find("reference.model: "),
            std::string::npos);
  EXPECT_EQ(said_after("teacher/README.md", "text"), "");
}

TEST_F(OutsideInputs, OfARunThatRecordedNoneMayBeAny) {
  EXPECT_TRUE(check_outside_inputs(config, {}));
}

TEST_F(OutsideInputs, ThatAreGoneAreAnError) {
  const auto recorded = digest_outside_inputs(config).value();
  std::filesystem::remove(config.task.sources["code"].path);
  const Status checked = check_outside_inputs(config, recorded);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().context.find("task.sources.code.path"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
