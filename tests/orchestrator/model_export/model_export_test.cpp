// Exported model folders: which checkpoint, which files are copied, and refusals.
#include "orchestrator/model_export/model_export.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "orchestrator/model_export/model_description.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using actors::StoredType;

class ModelExportTest : public ::testing::Test {
 protected:
  ModelExportTest() {
    config_.model.architecture = actors::Architecture::Qwen3;
    config_.model.vocabulary = 14;
    config_.model.head_dim = 8;
    config_.end_tokens = {1};
    layout_ = actors::Layout::make(config_.model, 14).value();
    fs::create_directories(run().base());
    actors::ModelFolderToWrite what;
    what.config_json = actors::write_config_json(config_);
    what.files["tokenizer.json"] = "{}";
    EXPECT_TRUE(actors::write_model_folder(run().base(), what, tensors(0)));
    fs::create_directory(run().root() / "checkpoints");
  }

  RunDir run() const { return RunDir(folder_ / "run"); }
  fs::path to() const { return folder_ / "exported"; }

  /// Weights that all equal `value`.
  std::vector<actors::TensorToWrite> tensors(float value) {
    flat_.assign(static_cast<std::size_t>(layout_->size()), value);
    return actors::tensors_to_write(*layout_, flat_);
  }
  /// A checkpoint of these weights, in a file with the name that export expects, or another.
  void save(std::uint64_t version,
            const std::string& name = "model.safetensors",
            std::optional<float> value = {}) {
    const auto partial = run().checkpoints().begin(PolicyVersion(version));
    ASSERT_TRUE(partial);
    ASSERT_TRUE(write_file_atomically(
        *partial / name,
        actors::write_safetensors(tensors(value.value_or(static_cast<float>(version))), {})));
    const CheckpointState state{version, PolicyVersion(version), "", {}};
    ASSERT_TRUE(
        run().checkpoints().complete(state, {100 + static_cast<std::int64_t>(version), 7}, 9));
  }
  /// A checkpoint of an adapter whose values all equal `value`.
  void save_adapter(std::uint64_t version, const actors::LoraConfig& lora, float value) {
    const auto layout = actors::AdapterLayout::make(*layout_, lora).value();
    const std::vector<float> flat(static_cast<std::size_t>(layout.size()), value);
    const auto partial = run().checkpoints().begin(PolicyVersion(version)).value();
    ASSERT_TRUE(
        write_file_atomically(partial / actors::kAdapterFile,
                              actors::write_safetensors(tensors_to_write(layout, flat), {})));
    ASSERT_TRUE(write_file_atomically(partial / actors::kAdapterConfigFile,
                                      actors::adapter_config_json(lora, "")));
    const CheckpointState state{version, PolicyVersion(version), "", {}};
    ASSERT_TRUE(
        run().checkpoints().complete(state, {100 + static_cast<std::int64_t>(version), 7}, 9));
  }
  Result<ExportedModel> exported(const std::string& source,
                                 std::optional<StoredType> type = {},
                                 bool merge = false) {
    TEMPER_TRY(ModelExport what, parse_export_source(run().root().string() + source));
    what.to = to();
    what.type = type;
    what.merge = merge;
    return export_model(what);
  }
  /// The value of all exported weights.
  float value() {
    const auto folder = actors::ModelFolder::open(to()).value();
    std::vector<float> flat(static_cast<std::size_t>(layout_->size()));
    EXPECT_TRUE(folder.read(actors::tensors_to_read(*layout_, flat)));
    return flat.front();
  }
  std::string refusal(const std::string& source) {
    const auto model = exported(source);
    return model ? "" : model.error().context;
  }

  test::TemporaryFolder folder_;
  actors::ConfigJson config_;
  std::optional<actors::Layout> layout_;
  std::vector<float> flat_;
};

TEST_F(ModelExportTest, ExportsTheNewestCheckpointByDefault) {
  save(20);
  save(40);
  EXPECT_EQ(exported("")->version, PolicyVersion(40));
  EXPECT_EQ(value(), 40);
  EXPECT_EQ(read_file(to() / "tokenizer.json").value(), "{}");
  fs::remove_all(to());
  EXPECT_EQ(exported("@20")->version, PolicyVersion(20));
  EXPECT_EQ(value(), 20);
  fs::remove_all(to());
  EXPECT_EQ(exported("@0")->from, run().base());
  EXPECT_EQ(value(), 0);
}

TEST_F(ModelExportTest, KeepsTheTypeOfTheBaseByDefault) {
  save(3);
  EXPECT_EQ(exported("", StoredType::Bfloat16)->type, StoredType::Bfloat16);
  EXPECT_EQ(actors::ModelFolder::open(to())->type(), StoredType::Bfloat16);
  EXPECT_EQ(value(), 3);
  const auto half = fs::file_size(to() / "model.safetensors");
  fs::remove_all(to());
  EXPECT_EQ(exported("")->type, StoredType::Float32);
  EXPECT_GT(fs::file_size(to() / "model.safetensors"), half * 3 / 2);
}

/// Between 1 and 2, bfloat16 has steps of 1/128; half a step is rounded away.
TEST_F(ModelExportTest, CountsWeightsThatRoundingLeavesUnchanged) {
  actors::ModelFolderToWrite what;
  what.config_json = actors::write_config_json(config_);
  fs::remove_all(run().base());
  fs::create_directories(run().base());
  ASSERT_TRUE(actors::write_model_folder(run().base(), what, tensors(1)));
  std::uint64_t version = 1;
  for (const auto& [trained, changes, loses] : {std::tuple{1.0F, false, false},
                                                {1.0F + 1 / 1024.0F, true, true},
                                                {1.0F - 1 / 1024.0F, true, true},
                                                {1.0F + 1 / 300.0F, true, true},
                                                {1.0F + 1 / 256.0F, true, true},
                                                {1.0F + 1 / 250.0F, true, false},
                                                {1.0F + 1 / 128.0F, true, false},
                                                {1.0F - 1 / 128.0F, true, false},
                                                {2.0F, true, false},
                                                {-1.0F, true, false}}) {
    save(++version, "model.safetensors", trained);
    const auto half = exported(fmt::format("@{}", version), StoredType::Bfloat16);
    ASSERT_TRUE(half);
    EXPECT_EQ(half->rounding.changed > 0, changes) << trained;
    EXPECT_EQ(half->rounding.lost, loses ? half->rounding.changed : 0) << trained;
    fs::remove_all(to());
    EXPECT_EQ(exported(fmt::format("@{}", version), StoredType::Float32)->rounding.lost, 0U);
    fs::remove_all(to());
  }
}

TEST_F(ModelExportTest, SkipsDamagedCheckpointsAndRefusesThemOnRequest) {
  save(20);
  save(40);
  const fs::path file = run().root() / "checkpoints/step-000040/model.safetensors";
  std::string bytes = read_file(file).value();
  bytes.back() ^= 1;
  ASSERT_TRUE(write_file_atomically(file, bytes));
  EXPECT_NE(refusal("@40").find("model.safetensors"), std::string::npos) << refusal("@40");
  EXPECT_FALSE(fs::exists(to()));
  EXPECT_EQ(exported("")->version, PolicyVersion(20));
}

TEST_F(ModelExportTest, ListsExistingCheckpointsIfOneIsMissing) {
  EXPECT_NE(refusal("").find("no intact checkpoint; found: none"), std::string::npos);
  save(20);
  EXPECT_NE(refusal("@21").find("of version 21; found: 20"), std::string::npos);
  EXPECT_FALSE(find_export_source(parse_export_source(run().root().string() + "@21").value()));
  EXPECT_TRUE(find_export_source(parse_export_source(run().root().string() + "@20").value()));
  EXPECT_NE(refusal("@x").find("expected RUN, RUN@best or RUN@STEP"), std::string::npos);
  save(30, "mine.pt");
  EXPECT_NE(refusal("").find("has no model.safetensors"), std::string::npos);
  fs::remove_all(run().base());
  EXPECT_NE(refusal("@20").find("it has no base/"), std::string::npos);
}

TEST_F(ModelExportTest, WritesTheAdapterOfACheckpointAsPeftReadsIt) {
  const actors::LoraConfig lora{.rank = 2, .alpha = 8, .targets = {"v_proj", "down_proj"}};
  save_adapter(20, lora, 0.5F);
  const auto model = exported("");
  ASSERT_TRUE(model) << model.error().context;
  EXPECT_TRUE(model->adapter);
  EXPECT_EQ(model->type, StoredType::Float32);
  const auto config = actors::read_adapter_config(to()).value();
  EXPECT_EQ(config.lora, lora);
  EXPECT_EQ(config.base, fs::absolute(run().base()).string());
  const auto layout = actors::AdapterLayout::make(*layout_, lora).value();
  EXPECT_EQ(actors::read_adapter(to(), layout).value().front(), 0.5F);
  EXPECT_FALSE(fs::exists(to() / "model.safetensors"));
}

TEST_F(ModelExportTest, MergesAnAdapterIntoTheBase) {
  const actors::LoraConfig lora{.rank = 2, .alpha = 8, .targets = {"v_proj"}};
  save_adapter(20, lora, 0.5F);
  const auto model = exported("", {}, true);
  ASSERT_TRUE(model) << model.error().context;
  EXPECT_FALSE(model->adapter);
  const auto folder = actors::ModelFolder::open(to()).value();
  std::vector<float> flat(static_cast<std::size_t>(layout_->size()));
  ASSERT_TRUE(folder.read(actors::tensors_to_read(*layout_, flat)));
  for (const actors::TensorSpec& t : layout_->stored()) {
    // The base is zero; B A has 2 terms of 0.5 * 0.5, scaled by 8 / 2.
    const float expected = t.name.find("v_proj") != std::string::npos ? 2.0F : 0.0F;
    EXPECT_EQ(flat[static_cast<std::size_t>(t.offset)], expected) << t.name;
    EXPECT_EQ(flat[static_cast<std::size_t>(t.offset + t.elements() - 1)], expected) << t.name;
  }
}

TEST_F(ModelExportTest, RefusesAnAdapterThatItCannotMerge) {
  save_adapter(20, {.rank = 2, .alpha = 8, .targets = {"v_proj"}}, 0.5F);
  const fs::path file = run().root() / "checkpoints/step-000020" / actors::kAdapterConfigFile;
  const std::string plain = read_file(file).value();
  const auto why = [&](const std::string& from, const std::string& to) {
    std::string text = plain;
    text.replace(text.find(from), from.size(), to);
    EXPECT_TRUE(write_file_atomically(file, text));
    const auto config = actors::read_adapter_config(file.parent_path());
    return config ? std::string() : config.error().context;
  };
  EXPECT_EQ(why("\"r\": 2", "\"r\": 2"), "");
  EXPECT_NE(why("\"use_rslora\": false", "\"use_rslora\": true")
                .find("adapter_config.json: use_rslora: expected false, found true"),
            std::string::npos);
  for (const char* const rank : {"\"two\"", "0", "-5", "1.5", "4294967298", "1e300", "null", "[2]"})
    EXPECT_NE(why("\"r\": 2", fmt::format("\"r\": {}", rank)).find("r: expected an integer"),
              std::string::npos)
        << rank;
  for (const char* const alpha : {"0.0", "-8.0", "1e-320", "1e300", "\"8\"", "true"})
    EXPECT_NE(why("\"lora_alpha\": 8.0", fmt::format("\"lora_alpha\": {}", alpha))
                  .find("lora_alpha: expected a number"),
              std::string::npos)
        << alpha;
  EXPECT_NE(why("\"v_proj\"", "7").find("target_modules: expected a list"), std::string::npos);
}

TEST_F(ModelExportTest, NeverOverwritesAFolder) {
  save(20);
  fs::create_directory(to());
  EXPECT_EQ(refusal(""), "") << "an empty folder is no loss";
  EXPECT_NE(refusal("").find("already exists and is not empty"), std::string::npos);
}

TEST_F(ModelExportTest, NamesTheTensorOfAnotherModel) {
  const actors::Layout own = *layout_;
  config_.model.ffn = 24;
  layout_ = actors::Layout::make(config_.model, 14).value();
  save(20);
  layout_ = own;
  EXPECT_NE(refusal("").find("mlp.gate_proj.weight': found shape"), std::string::npos)
      << refusal("");
}

TEST_F(ModelExportTest, WritesAFolderThatThePlannerReads) {
  const auto description = describe_model(run().base());
  ASSERT_TRUE(description) << description.error().context;
  EXPECT_EQ(description->parameters, layout_->parameters());
  EXPECT_NE(description->tokenizer.find("unreadable"), std::string::npos) << "{} is no tokenizer";
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  const auto model = catalog.model((run().base() / "config.json").string());
  ASSERT_TRUE(model) << model.error().context;
  EXPECT_EQ((*model)->layers, config_.model.layers);
  EXPECT_EQ((*model)->head_dim, 8);
  EXPECT_EQ((*model)->vocabulary, 14);
  EXPECT_TRUE((*model)->qk_norm);
  EXPECT_FALSE((*model)->qkv_bias);
}

}  // namespace
}  // namespace temper::orchestrator
