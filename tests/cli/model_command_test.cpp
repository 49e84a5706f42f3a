#include "cli/run/model_command.hpp"

#include "core/files.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace temper::cli
