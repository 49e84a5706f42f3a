#include "actors/model_folder/model_folder.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  Folder() {
    ModelConfig model;
    model.hidden = 16;
    model.layers = 2;
    model.ffn = 24;
    model.vocabulary = 11;
    model.head_dim = 4;
    layout_ = Layout::make(model, 11).value();
    flat_.resize(static_cast<std::size_t>(layout_->size()));
    std::iota(flat_.begin(), flat_.end(), 1.0f);
    config_.model = model;
    config_.end_tokens = {1};
  }

  /// The padding of the flat array is 0 in both.
  std::vector<float> read(const ModelFolder& folder) const {
    std::vector<float> values(flat_.size());
    const Status status = folder.read(tensors_to_read(*layout_, values));
    EXPECT_TRUE(status) << status.error().context;
    std::vector<float> stored;
    for (const auto& t : tensors_to_write(*layout_, values))
      stored.insert(stored.end(), t.values.begin(), t.values.end());
    return stored;
  }
  std::vector<float> stored() const {
    std::vector<float> all;
    for (const auto& t : tensors_to_write(*layout_, flat_))
      all.insert(all.end(), t.values.begin(), t.values.end());
    return all;
  }

  void write(Bytes shard = Bytes(1 << 20)) {
    ModelFolderToWrite what;
    what.config_json = write_config_json(config_);
    what.largest_shard = shard;
    what.files["tokenizer.json"] = "{}";
    const Status status =
        write_model_folder(folder_.path(), what, tensors_to_write(*layout_, flat_));
    ASSERT_TRUE(status) << status.error().context;
  }
  ModelFolder open() const { return ModelFolder::open(folder_.path()).value(); }
  std::string refusal() const {
    const auto folder = ModelFolder::open(folder_.path());
    if (!folder)
      return folder.error().context;
    std::vector<float> values(flat_.size());
    const Status read = folder->read(tensors_to_read(*layout_, values));
    const Status checked = folder->check(*layout_);
    EXPECT_EQ(read.has_value(), checked.has_value()) << "check() and read() differ";
    return read ? "" : read.error().context;
  }

  test::TemporaryFolder folder_;
  ConfigJson config_;
  std::optional<Layout> layout_;
  std::vector<float> flat_;
};

TEST_F(Folder, ReadAndCheckRejectValuesThatAreNotFinite) {
  write();
  EXPECT_EQ(refusal(), "");
  const auto specs = layout_->stored();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const Bytes shard : {Bytes(1 << 20), Bytes(512)}) {
      for (const std::size_t t : {std::size_t{0}, specs.size() / 2, specs.size() - 1}) {
        float& value = flat_[static_cast<std::size_t>(specs[t].offset + specs[t].elements() - 1)];
        const float good = std::exchange(value, bad);
        fs::remove_all(folder_.path());
        fs::create_directory(folder_.path());
        write(shard);
        EXPECT_NE(refusal().find(specs[t].name), std::string::npos) << specs[t].name;
        value = good;
      }
    }
  }
}

class TiedFolder : public Folder {
 protected:
  TiedFolder() {
    config_.model.tie_embeddings = true;
    layout_ = Layout::make(config_.model, 11).value();
    flat_.assign(static_cast<std::size_t>(layout_->size()), 0.5f);
    std::iota(flat_.begin(), flat_.end(), 1.0f);
  }
  /// Adds a separate head beside the embedding that differs at one element.
  void write_with_head(std::optional<std::size_t> changed, Bytes shard, float to = -1) {
    fs::remove_all(folder_.path());
    fs::create_directory(folder_.path());
    auto tensors = tensors_to_write(*layout_, flat_);
    TensorToWrite head = tensors.front();
    head.name = std::string(kHeadTensor);
    head_.assign(head.values.begin(), head.values.end());
    if (changed)
      head_.at(*changed) = to;
    head.values = head_;
    tensors.push_back(head);
    ModelFolderToWrite what;
    what.config_json = write_config_json(config_);
    what.largest_shard = shard;
    ASSERT_TRUE(write_model_folder(folder_.path(), what, tensors));
  }
  std::vector<float> head_;
};

TEST_F(TiedFolder, AcceptsAStoredHeadOnlyIfItEqualsTheEmbedding) {
  write();
  EXPECT_EQ(refusal(), "") << "without a head";
  for (const Bytes shard : {Bytes(1 << 20), Bytes(512)}) {  // in one file, and in two
    write_with_head(std::nullopt, shard);
    EXPECT_EQ(refusal(), "");
    for (const std::size_t at : {std::size_t{0}, head_.size() / 2, head_.size() - 1}) {
      write_with_head(at, shard);
      EXPECT_NE(refusal().find("lm_head.weight"), std::string::npos) << at;
      write_with_head(at, shard, std::numeric_limits<float>::quiet_NaN());
      EXPECT_NE(refusal(), "") << at;
    }
  }
}

TEST_F(Folder, ReadsBackOneFile) {
  write();
  const ModelFolder folder = open();
  EXPECT_EQ(folder.shards(), std::vector<std::string>{"model.safetensors"});
  EXPECT_EQ(folder.model(), config_.model);
  EXPECT_EQ(folder.end_tokens(), std::vector<std::int32_t>{1});
  EXPECT_TRUE(folder.has_tokenizer());
  EXPECT_EQ(read(folder), stored());
}

TEST_F(Folder, ReadsBackShardsThroughTheIndex) {
  write(Bytes(4000));
  const ModelFolder folder = open();
  EXPECT_GT(folder.shards().size(), 3U);
  EXPECT_EQ(folder.shards().front().substr(0, 12), "model-00001-");
  EXPECT_EQ(read(folder), stored());
  EXPECT_EQ(refusal(), "");
}

TEST_F(Folder, NamesABrokenShardAndItsTensor) {
  write(Bytes(4000));
  const std::string shard = open().shards()[1];
  const std::string whole = read_file(folder_ / shard).value();
  fs::remove(folder_ / shard);
  EXPECT_NE(refusal().find(shard), std::string::npos);
  ASSERT_TRUE(write_file_atomically(folder_ / shard, whole.substr(0, whole.size() - 1)));
  EXPECT_NE(refusal().find(shard + ": tensor 'model."), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("truncated"), std::string::npos) << refusal();
  ASSERT_TRUE(write_file_atomically(folder_ / shard, ""));
  EXPECT_NE(refusal().find(shard), std::string::npos) << refusal();
  const std::vector<float> one(16);
  ASSERT_TRUE(write_file_atomically(
      folder_ / shard,
      write_safetensors(std::vector<TensorToWrite>{{"model.norm.weight", {16}, one}}, {})));
  EXPECT_NE(refusal().find("missing, although model.safetensors.index.json names this file"),
            std::string::npos)
      << refusal();
}

TEST_F(Folder, NamesAMissingOrMisshapenTensorAndItsFile) {
  write();
  auto tensors = tensors_to_write(*layout_, flat_);
  const auto rewrite = [&](const std::vector<TensorToWrite>& list) {
    ASSERT_TRUE(write_file_atomically(folder_ / "model.safetensors", write_safetensors(list, {})));
  };
  const std::vector<TensorToWrite> fewer(tensors.begin() + 1, tensors.end());
  rewrite(fewer);
  EXPECT_NE(refusal().find("model.safetensors: tensor 'model.embed_tokens.weight': missing"),
            std::string::npos)
      << refusal();
  std::swap(tensors[0].shape[0], tensors[0].shape[1]);
  rewrite(tensors);
  EXPECT_NE(refusal().find("'model.embed_tokens.weight': found shape [16, 11], expected [11, 16]"),
            std::string::npos)
      << refusal();
}

TEST_F(Folder, ReadsATiedModelWithOrWithoutItsHead) {
  config_.model.tie_embeddings = true;
  layout_ = Layout::make(config_.model, 11).value();
  flat_.resize(static_cast<std::size_t>(layout_->size()));
  write();
  EXPECT_EQ(read(open()), stored());
  auto tensors = tensors_to_write(*layout_, flat_);
  tensors.push_back({"lm_head.weight", tensors[0].shape, tensors[0].values});
  ASSERT_TRUE(write_file_atomically(folder_ / "model.safetensors", write_safetensors(tensors, {})));
  EXPECT_EQ(refusal(), "");
}

TEST_F(Folder, NamesWhatIsMissing) {
  EXPECT_NE(refusal().find("config.json"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(folder_ / "config.json", write_config_json(config_)));
  EXPECT_NE(refusal().find("has neither model.safetensors nor model.safetensors.index.json"),
            std::string::npos);
  ASSERT_TRUE(write_file_atomically(folder_ / "pytorch_model.bin", "x"));
  EXPECT_NE(refusal().find("save the model as safetensors"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(folder_ / "model.safetensors.index.json",
                                    R"({"weight_map": {"a": "../b.safetensors"}})"));
  EXPECT_NE(refusal().find("expected a file name in this folder"), std::string::npos) << refusal();
  EXPECT_NE(ModelFolder::open(folder_ / "none").error().context.find("is not a folder"),
            std::string::npos);
}

/// Simulates a file that is truncated between stat and read: the kernel reports one page for this
/// file.
TEST_F(Folder, ReportsTruncatedWeightsWithoutASignal) {
  const fs::path shorter = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (!fs::exists(shorter))
    GTEST_SKIP() << "no file here that is shorter than it says";
  write();
  fs::remove(folder_ / "model.safetensors");
  fs::create_symlink(shorter, folder_ / "model.safetensors");
  std::vector<float> flat(flat_.size());
  const Status read = open().read(tensors_to_read(*layout_, flat));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().context.find("truncated while it was read"), std::string::npos)
      << read.error().context;
}

TEST_F(Folder, NamesAGitLfsPointerAlsoWhereItReadsTheHeaderAlone) {
  write();
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:";
  const std::pair<std::string, bool> cases[] = {
      {pointer + "0\nsize 9\n", true},
      {pointer + std::string(64, '0') + "\nsize 27243\n", true},
      {pointer + std::string(4000, '0'), true},
      {pointer.substr(0, 42), true},
      {pointer.substr(0, 30), false},
      {"version 1", false},
      {"version ", false},
      {"vers", false},
      {"", false},
      {"<!DOCTYPE html><html><body>Entry not found</body></html>", false},
      {"{\"error\": \"Repository not found\"}", false},
      {std::string("PK\3\4\0\0\0\0archive/data.pkl", 24), false},
  };
  for (const auto& [content, is_pointer] : cases) {
    ASSERT_TRUE(write_file_atomically(folder_ / "model.safetensors", content));
    const std::string whole = refusal();
    const Status header = open().check_tensors(*layout_);
    ASSERT_FALSE(header) << content;
    EXPECT_EQ(header.error().context, whole) << content;
    EXPECT_EQ(whole.find("git lfs pull") != std::string::npos, is_pointer) << whole;
  }
}

TEST_F(Folder, PrefersEndTokensOfGenerationConfig) {
  write();
  ASSERT_TRUE(
      write_file_atomically(folder_ / "generation_config.json", R"({"eos_token_id": [2, 3]})"));
  EXPECT_EQ(open().end_tokens(), (std::vector<std::int32_t>{2, 3}));
}

TEST_F(Folder, LinksAllFilesOfTheModel) {
  write(Bytes(4000));
  ASSERT_TRUE(write_file_atomically(folder_ / "generation_config.json", "{}"));
  ASSERT_TRUE(write_file_atomically(folder_ / "pytorch_model.bin", "x"));
  fs::create_symlink(folder_ / "tokenizer.json", folder_ / "vocab.json");
  const test::TemporaryFolder other;
  const ModelFolder folder = open();
  EXPECT_EQ(folder.carried_files(),
            (std::vector<std::string>{"generation_config.json", "tokenizer.json", "vocab.json"}));
  const Status linked = folder.link_to(other.path());
  ASSERT_TRUE(linked) << linked.error().context;
  const ModelFolder copy = ModelFolder::open(other.path()).value();
  EXPECT_EQ(copy.shards(), folder.shards());
  EXPECT_EQ(copy.carried_files(), folder.carried_files());
  EXPECT_FALSE(fs::is_symlink(other / "vocab.json"));
  EXPECT_FALSE(fs::exists(other / "pytorch_model.bin"));
  EXPECT_EQ(read(copy), stored());
}

}  // namespace
}  // namespace temper::actors
