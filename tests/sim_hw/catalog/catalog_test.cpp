#include "sim_hw/catalog/catalog.hpp"

#include "core/files.hpp"
#include "core/markdown.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace temper::sim_hw {
namespace {

Catalog shipped() {
  return Catalog(std::string(TEMPER_SOURCE_DIR) + "/configs");
}

TEST(Catalog, ComparesNamesWithoutCaseAndPunctuation) {
  EXPECT_EQ(slug("DeepSeek-R1 671B"), "deepseek-r1-671b");
  EXPECT_EQ(slug(" Qwen2.5_7B (base)"), "qwen2.5-7b-base");
}

TEST(Catalog, FindsAModelByFileNameNameAndAlias) {
  Catalog catalog = shipped();
  for (const char* name : {"deepseek-v3", "DeepSeek-V3", "DeepSeek-R1 671B", "deepseek_r1"}) {
    const auto model = catalog.model(name);
    ASSERT_TRUE(model) << model.error().context;
    EXPECT_EQ((*model)->hidden, 7168) << name;
  }
  EXPECT_EQ(*catalog.model("qwen2.5-7b"), *catalog.model("Qwen2.5-7B"));
}

TEST(Catalog, FindsANameThatHasASlash) {
  Catalog catalog = shipped();
  const std::string name = catalog.model("hy3").value()->aliases.at(0);
  ASSERT_NE(name.find('/'), std::string::npos);
  EXPECT_EQ(*catalog.model(name), *catalog.model("hy3"));
}

TEST(Catalog, ReadsAPathWithoutAnExtension) {
  Catalog catalog = shipped();
  EXPECT_EQ(catalog.model("models/gone").error().code, ErrorCode::NotFound);
}

TEST(Catalog, SuggestsTheNearestName) {
  Catalog catalog = shipped();
  EXPECT_EQ(catalog.model("kimi-k22").error().context,
            "unknown model `kimi-k22`; did you mean `kimi-k2`?");
}

TEST(Catalog, ReadsEveryShippedDescription) {
  Catalog catalog = shipped();
  EXPECT_GE(catalog.model_names().size(), 19U);
  for (const std::string& name : catalog.model_names())
    EXPECT_TRUE(catalog.model(name)) << catalog.model(name).error().context;
  for (const std::string& name : catalog.hardware_names())
    EXPECT_TRUE(catalog.hardware(name)) << catalog.hardware(name).error().context;
}

TEST(Catalog, FindsFittedConstantsOfAHardwareFile) {
  EXPECT_EQ(calibration_file("mine.yaml"), "mine.calibration.yaml");
  EXPECT_EQ(calibration_file("cards/mine.yaml"), "cards/mine.calibration.yaml");
  EXPECT_EQ(calibration_file("configs/hardware/cm384.yaml"), "configs/calibration/cm384.yaml");
}

/// docs/reference/hardware.md has the keys of hardware and models, made from their declarations.
void expect_table(const std::string& name, const std::string& table) {
  const std::string path = std::string(TEMPER_SOURCE_DIR) + "/docs/reference/hardware.md";
  std::string page = read_file(path).value();
  const std::string begin = "<!-- " + name + " -->\n";
  const std::string end = "<!-- end of " + name + " -->\n";
  const std::size_t at = page.find(begin) + begin.size();
  const std::size_t to = page.find(end);
  ASSERT_NE(to, std::string::npos) << "docs/reference/hardware.md has no " << end;
  if (const char* update = std::getenv("TEMPER_UPDATE_GOLDEN"); update && *update == '1') {
    page.replace(at, to - at, table);
    ASSERT_TRUE(write_file_atomically(path, page));
    return;
  }
  EXPECT_EQ(page.substr(at, to - at), table)
      << "docs/reference/hardware.md is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

TEST(HardwareReference, IsUpToDate) {
  const MarkdownOptions within_the_page{.heading = "###"};
  expect_table("keys of hardware", to_markdown<HardwareSpec>({}, within_the_page));
  expect_table("keys of a model", to_markdown<ModelSpec>({}, within_the_page));
  expect_table("keys of a framework", to_markdown<FrameworkSpec>({}, within_the_page));
}

TEST(Catalog, PutReplacesADescriptionInPlace) {
  Catalog catalog = shipped();
  const ModelSpec* const before = *catalog.model("qwen2.5-7b");
  ModelSpec changed = *before;
  changed.layers = 1;
  catalog.put(std::move(changed));
  EXPECT_EQ(before->layers, 1);
  EXPECT_EQ(*catalog.model("qwen2.5-7b"), before);
}

}  // namespace
}  // namespace temper::sim_hw
