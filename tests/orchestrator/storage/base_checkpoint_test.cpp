// The cache of base weights: used while it is what was put there, else made again.
#include "orchestrator/run/live/base_checkpoint.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/cache_folder.hpp"
#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// A worker that writes its weights at once, and counts how often it was asked.
constexpr const char* kWorker = R"(#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = --out ]; then out=$2; fi
  shift
done
printf weights > "$out/model.safetensors"
printf x >> "$TEMPER_CACHE/asked"
)";

/// One that ends when another has been asked too, with weights that take some time to copy.
constexpr const char* kSecondWorker = R"sh(#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = --out ]; then out=$2; fi
  shift
done
printf x >> "$TEMPER_CACHE/asked"
turns=0
while [ "$(wc -c < "$TEMPER_CACHE/asked")" -lt 2 ] && [ $turns -lt 100000 ]; do
  turns=$((turns + 1))
done
head -c 20000000 /dev/zero > "$out/model.safetensors"
)sh";
constexpr std::size_t kLarge = 20000000;

class BaseWeights : public ::testing::Test {
 protected:
  BaseWeights() {
    EXPECT_EQ(::setenv("TEMPER_CACHE", cache().c_str(), 1), 0);
    set_worker(kWorker);
  }
  ~BaseWeights() override { ::unsetenv("TEMPER_CACHE"); }

  void set_worker(const char* script) const {
    EXPECT_TRUE(write_file_atomically(folder_ / "worker", script));
    fs::permissions(folder_ / "worker", fs::perms::owner_all);
  }
  fs::path cache() const { return folder_ / "cache"; }
  /// What a run gets.
  std::string provided(const std::string& run = "base", const PipelineConfig& config = {}) const {
    BaseCheckpointOptions options;
    options.worker = folder_ / "worker";
    options.log = folder_ / "log";
    options.folder = folder_ / run;
    options.on_progress = [](std::string_view) {};
    const Status status = provide_base_checkpoint(config, options);
    EXPECT_TRUE(status) << status.error().context;
    return read_file(options.folder / "model.safetensors").value();
  }
  std::size_t asked() const { return read_file(cache() / "asked").value().size(); }
  fs::path kept(std::string_view name) const {
    for (const auto& entry : fs::directory_iterator(cache())) {
      if (entry.is_directory())
        return entry.path() / name;
    }
    return {};
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(BaseWeights, AreMadeOnce) {
  EXPECT_EQ(provided(), "weights");
  EXPECT_EQ(provided(), "weights");
  EXPECT_EQ(asked(), 1U);
}

TEST_F(BaseWeights, AreThoseOfARunWithoutAdapter) {
  PipelineConfig config;
  config.model.lora = actors::LoraConfig{};
  EXPECT_EQ(provided(), "weights");
  EXPECT_EQ(provided("other", config), "weights");
  EXPECT_EQ(asked(), 1U);
}

TEST_F(BaseWeights, ComeFromAModelFolderAlsoForAnAdapter) {
  actors::ConfigJson folder;
  folder.model.vocabulary = 14;
  const auto layout = actors::Layout::make(folder.model, 14).value();
  const std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  const test::TemporaryFolder model;
  ASSERT_TRUE(actors::write_model_folder(model.path(),
                                         {.config_json = actors::write_config_json(folder)},
                                         actors::tensors_to_write(layout, flat)));
  PipelineConfig config;
  config.model = actors::ModelFolder::open(model.path()).value().model();
  config.model.path = model.path().string();
  config.model.lora = actors::LoraConfig{.rank = 2};
  EXPECT_EQ(provided("base", config), read_file(model / "model.safetensors").value());
}

TEST_F(BaseWeights, ThatAreNotWhatWasPutThereAreMadeAgain) {
  provided();
  ASSERT_TRUE(write_file_atomically(kept("model.safetensors"), "weighty"));
  EXPECT_EQ(provided(), "weights");
  EXPECT_EQ(asked(), 2U);
  ASSERT_TRUE(write_file_atomically(kept("manifest"), "no manifest"));
  EXPECT_EQ(provided(), "weights");
  fs::remove(kept("manifest"));
  EXPECT_EQ(provided(), "weights");
  EXPECT_EQ(asked(), 4U);
}

TEST_F(BaseWeights, AreWhereTheOthersSayIfAVariableIsEmpty) {
  ASSERT_EQ(::setenv("TEMPER_CACHE", "", 1), 0);
  EXPECT_TRUE(cache_folder().is_absolute()) << cache_folder();
}

/// Each of them has found nothing, and both make it.
TEST_F(BaseWeights, TwoStartsAtOnceBothGetThem) {
  set_worker(kSecondWorker);
  std::array<pid_t, 2> starts{};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    starts[i] = ::fork();
    if (starts[i] == 0)
      ::_exit(provided(fmt::format("base-{}", i)).size() == kLarge ? 0 : 1);
  }
  for (const pid_t start : starts) {
    int status = 0;
    ::waitpid(start, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(asked(), 2U);
}

}  // namespace
}  // namespace temper::orchestrator
