#include "sim_hw/framework/framework.hpp"

#include "core/files.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::sim_hw {
namespace {

Catalog shipped() {
  return Catalog(std::string(TEMPER_SOURCE_DIR) + "/configs");
}

/// The file and what reading it says, without the folder.
std::string error_of(const std::string& text) {
  const std::filesystem::path file = test::temporary_file("mine.yaml");
  EXPECT_TRUE(write_file_atomically(file, text));
  const auto read = read_framework(file);
  if (read)
    return "";
  const std::string& said = read.error().context;
  return said.substr(said.find("mine.yaml"));
}

TEST(Framework, StagesAddUp) {
  const std::vector<FrameworkStage> stages{{"gather", std::chrono::seconds(2), {}, {}, {}},
                                           {"load", {}, std::chrono::microseconds(50), {}, {}},
                                           {"broadcast", {}, {}, BytesPerSecond(10e9), {}},
                                           {"copy", {}, {}, {}, BytesPerSecond(4e9)}};
  const MovedWeights moved{.tensors = 20'000, .version_bytes = 60e9, .device_bytes = 8e9};
  // 2 s + 20,000 x 50 us + 60 GB / 10 GB/s + 8 GB / 4 GB/s
  EXPECT_DOUBLE_EQ(stages_seconds(stages, moved), 2 + 1 + 6 + 2);
  EXPECT_EQ(stages_seconds({}, moved), 0);
}

TEST(Framework, CountsThreeTensorsForEachRoutedExpert) {
  Catalog catalog = shipped();
  EXPECT_EQ(weight_tensors(**catalog.model("qwen2.5-7b")), 28 * 12);
  EXPECT_EQ(weight_tensors(**catalog.model("qwen3-30b-a3b")), 48 * (12 + 3 * 128));
  EXPECT_EQ(weight_tensors(**catalog.model("deepseek-v3")), 61 * 12 + 58 * 3 * 256);
}

TEST(Framework, CountsTwoTensorsForEachAdaptedLayer) {
  Catalog catalog = shipped();
  const std::vector<std::string> targets{"q_proj", "o_proj", "up_proj"};
  const ModelSpec& dense = **catalog.model("qwen2.5-7b");
  EXPECT_EQ(weight_tensors(dense, *make_adapter(dense, 8, targets)), 2 * 28 * 3);
  const ModelSpec& experts = **catalog.model("qwen3-30b-a3b");
  EXPECT_EQ(weight_tensors(experts, *make_adapter(experts, 8, targets)), 2 * 48 * (2 + 128));
}

TEST(Framework, ReadsEveryShippedDescription) {
  Catalog catalog = shipped();
  EXPECT_GE(catalog.framework_names().size(), 5U);
  for (const std::string& name : catalog.framework_names()) {
    const auto framework = catalog.framework(name);
    ASSERT_TRUE(framework) << framework.error().context;
    EXPECT_EQ((*framework)->name, name);
    EXPECT_NE((*framework)->source, "");
    const bool adds = !(*framework)->publication.empty() || !(*framework)->role_switch.empty();
    EXPECT_EQ(adds, name != kIdealFramework);
    EXPECT_EQ(adds, !(*framework)->fits.empty()) << name << ": every constant has a source";
  }
  EXPECT_EQ(catalog.framework("nemo").error().context,
            "unknown framework `nemo`; known are `cann-recipes`, `checkpoint-engine`, `ideal`, "
            "`nemo-rl`, `verl`");
}

TEST(Framework, NamesTheLineOfAStageWithoutOneCost) {
  EXPECT_EQ(error_of("name: mine\n"
                     "publication:\n"
                     "  - {stage: load, time: 2s, per_tensor: 5us}\n"),
            "mine.yaml:3: publication[0]: expected one of `time`, `per_tensor`, "
            "`version_bandwidth` and `device_bandwidth`, found `time` and `per_tensor`; divide it "
            "into several stages");
  EXPECT_EQ(
      error_of("name: mine\n"
               "role_switch:\n"
               "  - {stage: pin, device_bandwidth: 3GB/s}\n"
               "  - {stage: load, per_tensor: 5us}\n"),
      "mine.yaml:4: role_switch[1]: expected one of `time` and `device_bandwidth`, since each "
      "device moves its own share, found `per_tensor`");
  EXPECT_NE(error_of("publication: [{stage: load, version_bandwidth: 57B/s}]\n").find("1MB/s"),
            std::string::npos)
      << "a slip of the unit; the sum of stages would not be a duration";
  EXPECT_EQ(error_of("publication: [{time: 2s}]\n"),
            "mine.yaml:1: publication[0]: expected a name (`stage: load`), found none");
  EXPECT_EQ(error_of("publication: [{stage: load}]\n"),
            "mine.yaml:1: publication[0]: expected one of `time`, `per_tensor`, "
            "`version_bandwidth` and `device_bandwidth`, found none; give it one");
  EXPECT_NE(error_of("publication: [{stage: load, tme: 2s}]\n").find("did you mean `time`?"),
            std::string::npos);
}

}  // namespace
}  // namespace temper::sim_hw
