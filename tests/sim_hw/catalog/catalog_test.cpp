#include "sim_hw/catalog/catalog.hpp"

#include <gtest/gtest.h>

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

TEST(Catalog, PutReplacesADescriptionWherePointersSeeIt) {
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
