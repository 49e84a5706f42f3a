#include "cli/run/model_command.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "cli/command/exit_code.hpp"
#include "cli/run/check_command.hpp"
#include "cli/run/run_command.hpp"
#include "core/files.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace temper::cli {
namespace {

const std::string kConfig = TEMPER_SOURCE_DIR "/docs/cluster/my-model/config.json";

TEST(ModelImport, WritesAConfigJsonAsAFileThatThePlannerReads) {
  const test::TemporaryFolder folder;
  ModelOptions options;
  options.folder = "import";
  options.file = kConfig;
  options.out = (folder.path() / "mine.yaml").string();
  ASSERT_EQ(run_model(options), 0);
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  const auto written = catalog.model(options.out);
  ASSERT_TRUE(written) << written.error().context;
  EXPECT_EQ((*written)->name, "my-model");
  EXPECT_EQ((*written)->layers, 64);
  EXPECT_EQ((*written)->kv_heads, 8);
}

TEST(ModelImport, TakesOneFileAndSaysSo) {
  ModelOptions options;
  options.folder = "imprt";
  options.file = kConfig;
  EXPECT_NE(run_model(options), 0);
  options.folder = "import";
  options.file = "no/such/config.json";
  EXPECT_NE(run_model(options), 0);
}

TEST(ModelCompare, IsForAModelFolderAlone) {
  ModelOptions options;
  options.compare = true;
  options.folder = "import";
  options.file = kConfig;
  EXPECT_EQ(run_model(options), kBadInput);
  options.file.clear();
  options.folder = "no/such/folder";
  EXPECT_EQ(run_model(options), kBadInput);
  options.yaml = true;
  EXPECT_EQ(run_model(options), kBadInput);
}

// --- Folders that no run can read

namespace fs = std::filesystem;
using Tensors = std::vector<actors::TensorToWrite>;

/// A folder with a tied head, and what is wrong with it.
struct Damage {
  const char* name;
  std::function<void(Tensors&, std::vector<float>&)> of_tensors = [](auto&, auto&) {};
  std::function<void(const fs::path&)> of_file = [](const fs::path&) {};
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all{
      {"AHeadThatDiffersFromItsEmbedding",
       [](Tensors& tensors, std::vector<float>& head) {
         head.assign(tensors.front().values.begin(), tensors.front().values.end());
         head.back() += 1;
         tensors.push_back(tensors.front());
         tensors.back().name = actors::kHeadTensor;
         tensors.back().values = head;
       }},
      {"AValueThatIsNoNumber",
       [](Tensors& tensors, std::vector<float>& values) {
         values.assign(tensors[1].values.begin(), tensors[1].values.end());
         values.front() = std::numeric_limits<float>::quiet_NaN();
         tensors[1].values = values;
       }},
      {"AValueThatIsNotFinite",
       [](Tensors& tensors, std::vector<float>& values) {
         values.assign(tensors.back().values.begin(), tensors.back().values.end());
         values.back() = std::numeric_limits<float>::infinity();
         tensors.back().values = values;
       }},
      {"AMissingTensor", [](Tensors& tensors, auto&) { tensors.pop_back(); }},
      {"AnUnknownTensor",
       [](Tensors& tensors, auto&) {
         tensors.push_back(tensors.back());
         tensors.back().name = "model.unknown.weight";
       }},
      {"AnotherShape",
       [](Tensors& tensors, auto&) {
         tensors.front().shape = {tensors.front().shape[0] * tensors.front().shape[1]};
       }},
      {"AFileThatIsCutShort",
       [](auto&, auto&) {},
       [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); }},
      {"AnEmptyFile", [](auto&, auto&) {}, [](const fs::path& file) { fs::resize_file(file, 0); }},
      {"APointerInItsPlace",
       [](auto&, auto&) {},
       [](const fs::path& file) {
         ASSERT_TRUE(write_file_atomically(file, "version https://git-lfs.github.com/spec/v1\n"));
       }},
      {"NoWeights", [](auto&, auto&) {}, [](const fs::path& file) { fs::remove(file); }}};
  return all;
}

class AModelFolder : public ::testing::TestWithParam<Damage> {};
INSTANTIATE_TEST_SUITE_P(With, AModelFolder, ::testing::ValuesIn(damages()), [](const auto& p) {
  return std::string(p.param.name);
});

TEST_P(AModelFolder, ThatNoRunCanReadIsRefusedByModelCheckAndRunBeforeAnythingIsStarted) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "model";
  fs::create_directory(path);
  actors::ConfigJson config;
  config.model.vocabulary = 14;
  config.model.head_dim = 8;
  config.model.tie_embeddings = true;
  config.end_tokens = {1};
  const auto layout = actors::Layout::make(config.model, 14).value();
  std::vector<float> flat(static_cast<std::size_t>(layout.size()), 0.5f), changed;
  Tensors tensors = actors::tensors_to_write(layout, flat);
  GetParam().of_tensors(tensors, changed);
  actors::ModelFolderToWrite what;
  what.config_json = actors::write_config_json(config);
  ASSERT_TRUE(actors::write_model_folder(path, what, tensors));
  GetParam().of_file(path / "model.safetensors");

  ModelOptions model;
  model.folder = path;
  EXPECT_NE(run_model(model), 0);

  const fs::path yaml = folder.path() / "run.yaml";
  ASSERT_TRUE(write_file_atomically(yaml,
                                    "policy: torch\nmodel: {path: " + path.string() +
                                        "}\nrun_dir: " + (folder.path() / "run").string() + "\n"));
  CheckOptions check;
  check.config = yaml;
  std::ostringstream out, err;
  EXPECT_EQ(run_check(check, out, err), kBadInput);
  EXPECT_NE(err.str().find("model.path"), std::string::npos) << err.str();

  RunOptions run;
  run.config = yaml;
  run.plain = true;
  EXPECT_EQ(run_pipeline(run), kBadInput);
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

}  // namespace
}  // namespace temper::cli
