// The cache of base weights: used while it is what was put there, else made again.
#include "orchestrator/run/live/base_checkpoint.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

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

class BaseWeights : public ::testing::Test {
 protected:
  BaseWeights() {
    EXPECT_EQ(::setenv("TEMPER_CACHE", cache().c_str(), 1), 0);
    EXPECT_TRUE(write_file_atomically(folder_ / "worker", kWorker));
    fs::permissions(folder_ / "worker", fs::perms::owner_all);
  }
  ~BaseWeights() override { ::unsetenv("TEMPER_CACHE"); }

  fs::path cache() const { return folder_ / "cache"; }
  /// What a run gets.
  std::string provided() const {
    BaseCheckpointOptions options;
    options.worker = folder_ / "worker";
    options.log = folder_ / "log";
    options.folder = folder_ / "base";
    options.on_progress = [](std::string_view) {};
    const Status status = provide_base_checkpoint(PipelineConfig{}, options);
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

}  // namespace
}  // namespace temper::orchestrator
