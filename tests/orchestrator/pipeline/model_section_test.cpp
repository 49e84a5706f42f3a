// The section `model` when it names a folder.
#include "orchestrator/pipeline/model_section.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

class ModelSection : public ::testing::Test {
 protected:
  ModelSection() {
    config_.model.architecture = actors::Architecture::Qwen2;
    config_.model.hidden = 48;
    config_.model.vocabulary = 300;
    config_.model.head_dim = 12;
    config_.model.context = Tokens(64);
    config_.end_tokens = {7, 8};
    const auto layout = actors::Layout::make(config_.model, 300).value();
    const std::vector<float> flat(static_cast<std::size_t>(layout.size()));
    actors::ModelFolderToWrite what;
    what.config_json = actors::write_config_json(config_);
    EXPECT_TRUE(
        actors::write_model_folder(folder_.path(), what, actors::tensors_to_write(layout, flat)));
  }
  LoadedConfig load(const std::string& more = "") const {
    return LoadedConfig(
        "c.yaml", fmt::format("model:\n  path: {}\n{}", folder_.path().string(), more), {});
  }
  std::string issue(const std::string& more) const {
    const auto loaded = load(more);
    return loaded.issues().empty()
               ? ""
               : loaded.issues().front().key + ": " + loaded.issues().front().message;
  }

  test::TemporaryFolder folder_;
  actors::ConfigJson config_;
};

TEST_F(ModelSection, IsReadFromTheFolder) {
  const auto loaded = load();
  ASSERT_TRUE(loaded.issues().empty()) << render(loaded.issues());
  actors::ModelConfig expected = config_.model;
  expected.path = folder_.path().string();
  expected.end_tokens = {7, 8};
  EXPECT_EQ(loaded.config().model, expected);
}

TEST_F(ModelSection, AKeyToBeIgnoredIsAWarningAndAnyOtherUnknownOneAnIssue) {
  const auto file = folder_.path() / "config.json";
  std::string text = read_file(file).value();
  text.insert(text.find('{') + 1, "\"lab_setting\": 3,");
  ASSERT_TRUE(write_file_atomically(file, text));
  EXPECT_EQ(load().issues().front().key, "model.path");
  const auto loaded = load("  ignore: [lab_setting, not_there]\n");
  EXPECT_EQ(render(loaded.issues()), "");
  ASSERT_EQ(loaded.warnings().size(), 1U);
  EXPECT_EQ(loaded.warnings().front().location, "c.yaml:3");
  EXPECT_EQ(loaded.warnings().front().key, "model.ignore");
  EXPECT_NE(loaded.warnings().front().message.find("`lab_setting`"), std::string::npos);
  EXPECT_EQ(loaded.config().model.ignore, (std::vector<std::string>{"lab_setting", "not_there"}));
  EXPECT_FALSE(actors::ModelFolder::open(folder_.path()));
  EXPECT_TRUE(actors::ModelFolder::open(folder_.path(), loaded.config().model.ignore));
}

TEST_F(ModelSection, KeepsTheKeysThatTheFolderDoesNotDecide) {
  const auto model =
      load("  context: 40\n  end_tokens: [9]\n  compute_dtype: bfloat16\n").config().model;
  EXPECT_EQ(model.compute_dtype, actors::ComputeType::Bfloat16);
  EXPECT_EQ(model.context, Tokens(40));
  EXPECT_EQ(model.end_tokens, std::vector<std::int32_t>{9});
  EXPECT_NE(issue("  context: 65\n").find("model.context: must be at most the folder's"),
            std::string::npos);
}

TEST_F(ModelSection, AutoBecomesTheFastestTypeOfThisHost) {
  EXPECT_EQ(load("  compute_dtype: auto\n").config().model.compute_dtype, fastest_compute_type());
  EXPECT_NE(fastest_compute_type(), actors::ComputeType::Auto);
  const auto without_folder = LoadedConfig("c.yaml", "model: {compute_dtype: auto}\n", {});
  EXPECT_EQ(without_folder.config().model.compute_dtype, fastest_compute_type());
}

TEST_F(ModelSection, AKeyThatSaysSomethingElseIsAnIssue) {
  EXPECT_EQ(issue("  hidden: 48\n"), "");
  EXPECT_EQ(
      issue("  hidden: 64\n"),
      "model.hidden: expected 48, as in the config.json of model.path, found 64; remove the key");
  EXPECT_EQ(issue("  rope_scaling: {factor: 4}\n").find("model.rope_scaling: expected null, as in"),
            0);
  EXPECT_EQ(issue("  head_dim: null\n"), "");
}

TEST_F(ModelSection, AFolderThatCannotBeReadIsAnIssueOfItsKey) {
  ASSERT_TRUE(write_file_atomically(folder_ / "config.json", "{}"));
  EXPECT_NE(issue("").find("model.path: "), std::string::npos);
  EXPECT_NE(issue("").find("`architectures` is missing"), std::string::npos) << issue("");
}

TEST_F(ModelSection, WhatARunWroteIsReadWithoutTheFolder) {
  const std::string resolved = to_yaml(load().config());
  const LoadedConfig with("c.yaml", resolved, {});
  ASSERT_TRUE(write_file_atomically(folder_ / "config.json", "{}"));
  const LoadedConfig without("c.yaml", resolved, {});
  EXPECT_TRUE(without.issues().empty()) << render(without.issues());
  EXPECT_EQ(without.config().model, with.config().model);
}

TEST_F(ModelSection, SaysWhatTokensMean) {
  PipelineConfig config = load().config();
  const auto ids = tokenizer_of(config, folder_.path());
  ASSERT_TRUE(ids) << ids.error().context;
  EXPECT_EQ(ids->vocabulary(), 300);
  EXPECT_EQ(ids->end(), 7);
  EXPECT_NE(ids->encode("a").error().context.find("prompt_token_ids"), std::string::npos);
  config.task.tokenizer = actors::TokenizerKind::Bytes;
  const auto bytes = tokenizer_of(config, folder_.path());
  EXPECT_EQ(bytes->encode("a").value(), std::vector<std::int32_t>{2 + 'a'});
  EXPECT_EQ(bytes->ends(), (std::vector<std::int32_t>{7, 8}));
  config.model.end_tokens.clear();
  config.task.tokenizer = actors::TokenizerKind::Auto;
  EXPECT_NE(tokenizer_of(config, folder_.path()).error().context.find("model.end_tokens"),
            std::string::npos);
}

TEST_F(ModelSection, HasTheTokenizerOfTheFolderAlsoForARunWithoutABase) {
  actors::TaskConfig task;
  task.kind = actors::TaskKind::Jsonl;
  ASSERT_TRUE(write_file_atomically(folder_ / "tokenizer.json",
                                    actors::tokenizer_json_of(actors::Tokenizer::for_task(task))));
  const auto read = tokenizer_of(load().config(), {});
  ASSERT_TRUE(read) << read.error().context;
  EXPECT_EQ(read->encode("a").value(), std::vector<std::int32_t>{2 + 'a'});
}

TEST_F(ModelSection, ATeacherNeedsThePolicysVocabularyAndContext) {
  const std::string teacher = fmt::format("reference:\n  model: {}\n", folder_.path().string());
  const auto said = [&](const std::string& yaml) {
    const PipelineConfig config = LoadedConfig("c.yaml", yaml + teacher, {}).config();
    const Status fits = check_reference_model(config, teacher_of(config, {}));
    return fits ? std::string() : fits.error().context;
  };
  EXPECT_EQ(load(teacher).config().reference.model, folder_.path().string());
  EXPECT_EQ(said(""), "expected a model with the policy's vocabulary of 14 tokens, found 300");
  EXPECT_EQ(said("model: {vocabulary: 300, context: 128}\n"),
            "expected a context of at least model.context (128 tokens), found 64");
  EXPECT_EQ(said("model: {vocabulary: 300, context: 64}\n"), "");
}

TEST_F(ModelSection, ATeacherOfAnotherEngineMayBeOfAFamilyThatTemperDoesNotKnow) {
  ASSERT_TRUE(write_file_atomically(folder_ / "config.json", R"({"model_type": "gpt2"})"));
  const std::string teacher = fmt::format("reference:\n  model: {}\n", folder_.path().string());
  const auto fits = [](const std::string& yaml) {
    const PipelineConfig config = LoadedConfig("c.yaml", yaml, {}).config();
    return check_reference_model(config, teacher_of(config, {})).has_value();
  };
  EXPECT_FALSE(fits(teacher));
  const std::string engine = "  engine: {kind: python, use: \"mine:Reference\"}\n";
  EXPECT_TRUE(fits(teacher + engine));
}

TEST_F(ModelSection, ARunIsReadWithoutItsTeacher) {
  const LoadedConfig loaded("c.yaml", "reference: {model: /no/such/folder}\n", {});
  EXPECT_TRUE(loaded.issues().empty());
  const Status fits = check_reference_model(loaded.config(), teacher_of(loaded.config(), {}));
  ASSERT_FALSE(fits) << "but does not start";
  EXPECT_NE(fits.error().context.find("/no/such/folder"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
