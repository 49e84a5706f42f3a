// A run that starts from an adapter of peft: which adapters fit, and the base that it gets.
#include "orchestrator/model_export/adapter_start.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/files.hpp"
#include "orchestrator/model_export/model_export.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using actors::LoraConfig;

constexpr float kValue = 0.5F;  ///< All values of the adapter; the base is zero.

class AdapterStartTest : public ::testing::Test {
 protected:
  AdapterStartTest() {
    config_.model.hidden = 16;
    config_.model.layers = 1;
    config_.model.heads = 2;
    config_.model.kv_heads = 1;
    config_.model.ffn = 32;
    layout_ =
        actors::Layout::make(config_.model, actors::Tokenizer::for_task(config_.task).vocabulary())
            .value();
    actors::ConfigJson json;
    json.model = config_.model;
    json.model.vocabulary = layout_->vocabulary();
    json.end_tokens = {1};
    actors::ModelFolderToWrite what;
    what.config_json = actors::write_config_json(json);
    flat_.assign(static_cast<std::size_t>(layout_->size()), 0.0F);
    fs::create_directories(base());
    EXPECT_TRUE(
        actors::write_model_folder(base(), what, actors::tensors_to_write(*layout_, flat_)));
    write_adapter(lora_);
  }

  fs::path base() const { return RunDir(folder_ / "run").base(); }
  fs::path adapter() const { return folder_ / "adapter"; }

  void write_adapter(const LoraConfig& lora) {
    const auto layout = actors::AdapterLayout::make(*layout_, lora).value();
    const std::vector<float> flat(static_cast<std::size_t>(layout.size()), kValue);
    fs::create_directories(adapter());
    EXPECT_TRUE(
        write_file_atomically(adapter() / actors::kAdapterFile,
                              actors::write_safetensors(tensors_to_write(layout, flat), {})));
    EXPECT_TRUE(write_file_atomically(adapter() / actors::kAdapterConfigFile,
                                      actors::adapter_config_json(lora, "some/base")));
  }
  Status start() {
    TEMPER_TRY(const AdapterStart start, find_adapter_start(adapter(), config_));
    return apply_adapter_start(start, config_, base());
  }
  std::string refusal() {
    const auto found = find_adapter_start(adapter(), config_);
    return found ? "" : found.error().context;
  }
  Result<ExportedModel> export_start(bool merge) {
    TEMPER_TRY(ModelExport what, parse_export_source((folder_ / "run").string() + "@0"));
    what.to = folder_ / (merge ? "merged" : "exported");
    what.merge = merge;
    return export_model(what);
  }
  /// The first value of each tensor of a folder, by name.
  std::map<std::string, float> values(const fs::path& folder) {
    const auto model = actors::ModelFolder::open(folder).value();
    EXPECT_TRUE(model.read(actors::tensors_to_read(*layout_, flat_)));
    std::map<std::string, float> found;
    for (const actors::TensorSpec& t : layout_->stored())
      found[t.name] = flat_[static_cast<std::size_t>(t.offset)];
    return found;
  }
  void expect_merged(const fs::path& folder) {
    for (const auto& [name, value] : values(folder)) {
      // B A has 2 terms of 0.5 * 0.5, scaled by 8 / 2.
      const bool is_target =
          name.find("v_proj") != std::string::npos || name.find("down_proj") != std::string::npos;
      EXPECT_EQ(value, is_target ? 2.0F : 0.0F) << name;
    }
  }

  const test::TemporaryFolder folder_;
  const LoraConfig lora_{.rank = 2, .alpha = 8, .targets = {"v_proj", "down_proj"}};
  PipelineConfig config_;
  std::optional<actors::Layout> layout_;
  std::vector<float> flat_;
};

TEST_F(AdapterStartTest, WithModelLoraIsCopiedIntoTheBaseAndExportedAsStepZero) {
  config_.model.lora = lora_;
  config_.model.lora->targets = {"down_proj", "v_proj"};  // The order has no meaning.
  ASSERT_TRUE(start()) << start().error().context;
  for (const auto& [name, value] : values(base()))
    EXPECT_EQ(value, 0) << name;
  const auto exported = export_start(false);
  ASSERT_TRUE(exported) << exported.error().context;
  EXPECT_TRUE(exported->adapter);
  EXPECT_EQ(actors::read_adapter_config(folder_ / "exported")->lora, lora_);
  const auto layout = actors::AdapterLayout::make(*layout_, lora_).value();
  EXPECT_EQ(actors::read_adapter(folder_ / "exported", layout)->front(), kValue);
  ASSERT_TRUE(export_start(true));
  expect_merged(folder_ / "merged");
}

TEST_F(AdapterStartTest, IsAnInputOfTheRunThatItsManifestCovers) {
  config_.model.lora = lora_;
  const RunDir run(folder_ / "run");
  ASSERT_TRUE(write_file_atomically(run.file("config.yaml"), "steps: 1\n"));
  ASSERT_TRUE(start());
  ASSERT_TRUE(run.seal_inputs({}));
  const auto sealed = read_manifest(run.file(kInputsManifest));
  ASSERT_TRUE(sealed) << sealed.error().context;
  EXPECT_EQ(
      std::ranges::count(sealed->files, "base/adapter/adapter_model.safetensors", &FileSum::name),
      1);
}

TEST_F(AdapterStartTest, WithoutModelLoraIsMergedIntoTheBase) {
  ASSERT_TRUE(start());
  expect_merged(base());
  EXPECT_FALSE(fs::exists(base() / actors::kFirstAdapterFolder));
}

TEST_F(AdapterStartTest, NamesWhatDoesNotFitAndTheNextStep) {
  config_.model.lora = LoraConfig{.rank = 4, .alpha = 8, .targets = {"v_proj"}};
  EXPECT_NE(refusal().find("{rank: 2, alpha: 8, targets: [v_proj, down_proj]}, found {rank: 4, "
                           "alpha: 8, targets: [v_proj]}; set model.lora to the former, or remove"),
            std::string::npos)
      << refusal();
  config_.model.lora = lora_;
  config_.model.ffn = 48;
  EXPECT_NE(refusal().find("adapter_model.safetensors: tensor "), std::string::npos) << refusal();
  config_.model.ffn = 32;
  config_.policy = actors::PolicyKind::Synthetic;
  EXPECT_NE(refusal().find("policy: expected `torch`"), std::string::npos) << refusal();
}

TEST_F(AdapterStartTest, NamesASettingOfPeftThatItDoesNotKnow) {
  const std::string plain = read_file(adapter() / actors::kAdapterConfigFile).value();
  const auto said_of = [&](const std::string& setting) {
    std::string text = plain;
    text.insert(text.find('{') + 1, setting + ",");
    EXPECT_TRUE(write_file_atomically(adapter() / actors::kAdapterConfigFile, text));
    return refusal();
  };
  // What peft 0.21 writes for a plain adapter.
  EXPECT_EQ(said_of(R"("lora_bias": false, "target_parameters": null, "exclude_modules": null,
                       "layer_replication": null, "use_bdlora": null, "loftq_config": {})"),
            "");
  EXPECT_NE(said_of(R"("lora_bias": true)").find("lora_bias: expected false, found true"),
            std::string::npos);
  EXPECT_NE(said_of(R"("layer_replication": [[0, 4]])").find("layer_replication: expected null"),
            std::string::npos);
  std::string changed = plain;
  const std::string from = "\"init_lora_weights\": true";
  changed.replace(changed.find(from), from.size(), "\"init_lora_weights\": \"pissa\"");
  ASSERT_TRUE(write_file_atomically(adapter() / actors::kAdapterConfigFile, changed));
  EXPECT_NE(refusal().find("init_lora_weights: expected true, false, \"gaussian\""),
            std::string::npos)
      << refusal();
}

}  // namespace
}  // namespace temper::orchestrator
