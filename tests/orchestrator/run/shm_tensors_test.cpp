// ShmTensors: which descriptions it accepts, and whose files live how long.
#include "orchestrator/run/shm_tensors.hpp"

#include "core/hash.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class ShmTensorsTest : public ::testing::Test {
 protected:
  static std::unique_ptr<ShmTensors> store_in(const fs::path& parent) {
    auto store = ShmTensors::create(std::chrono::seconds(60), parent);
    EXPECT_TRUE(store) << store.error().context;
    return *std::move(store);
  }
  /// A tensor of 2 x 3 int32, whose file an engine has written.
  actors::Tensor written(const std::string& file = "rollout-0.1") const {
    std::ofstream(store_->folder() / file) << std::string(24, 'x');
    return {"routes", "int32", {2, 3}, 24, hash64(std::string(24, 'x')), file};
  }
  Status check(std::span<const actors::Tensor> tensors) const {
    std::set<std::string> named;
    return store_->check(tensors, named);
  }
  bool is_there(const actors::Tensor& t) const { return store_->find({&t, 1}).front(); }
  static std::size_t files_in(const fs::path& folder) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  test::TemporaryFolder parent_;
  std::unique_ptr<ShmTensors> store_ = store_in(parent_.path());
};

TEST_F(ShmTensorsTest, ItsFolderIsThisUsersAlone) {
  struct stat found {};
  ASSERT_EQ(::stat(store_->folder().parent_path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
}

TEST_F(ShmTensorsTest, AFileThatWasTakenIsThereUntilItIsRemoved) {
  std::vector<actors::Tensor> tensors = {written()};
  ASSERT_TRUE(check(tensors));
  store_->take(tensors);
  EXPECT_TRUE(store_->has(tensors));
  EXPECT_EQ(fs::path(tensors[0].file).parent_path(), store_->folder());
  EXPECT_FALSE(fs::exists(store_->folder() / "rollout-0.1")) << "its engine cannot replace it";
  store_->remove(tensors);
  EXPECT_FALSE(store_->has(tensors));
  EXPECT_EQ(files_in(store_->folder()), 0U);
}

TEST_F(ShmTensorsTest, AFileThatIsRefusedIsRemoved) {
  const std::vector<actors::Tensor> tensors = {written()};
  store_->refuse(tensors);
  EXPECT_EQ(files_in(store_->folder()), 0U);
}

TEST_F(ShmTensorsTest, AnEmptyArrayAndAScalarAreTensors) {
  std::ofstream(store_->folder() / "a");
  std::ofstream(store_->folder() / "b") << std::string(8, 'x');
  EXPECT_TRUE(check(std::vector<actors::Tensor>{{"empty", "float32", {0, 4}, 0, 0, "a"},
                                                {"scalar", "int64", {}, 8, 0, "b"}}));
}

TEST_F(ShmTensorsTest, OnlyPossibleDescriptionsAreAccepted) {
  const actors::Tensor good = written();
  struct Case {
    std::string what;
    void (*damage)(actors::Tensor&);
  };
  const Case cases[] = {
      {"no name", [](auto& t) { t.name = ""; }},
      {"a name that is too long", [](auto& t) { t.name = std::string(65, 'n'); }},
      {"a name with a slash", [](auto& t) { t.name = "a/b"; }},
      {"a name with a zero byte", [](auto& t) { t.name = std::string("a\0b", 3); }},
      {"an unknown type", [](auto& t) { t.dtype = "object"; }},
      {"another size", [](auto& t) { t.bytes = 25; }},
      {"another shape",
       [](auto& t) {
         t.shape = {3, 3};
       }},
      {"a shape beyond 64 bits",
       [](auto& t) {
         t.shape = {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF};
       }},
      {"an empty shape that numpy refuses",
       [](auto& t) {
         t.shape = {0, 0xFFFFFFFF, 0xFFFFFFFF};
         t.bytes = 0;
         t.file = "empty";
       }},
      {"too many dimensions",
       [](auto& t) {
         t.shape = {1, 1, 1, 1, 1, 1, 1, 1, 6};
       }},
      {"a shape that its file does not have",
       [](auto& t) {
         t.shape = {2, 2};
         t.bytes = 16;
       }},
      {"no file", [](auto& t) { t.file = ""; }},
      {"a file that is not there", [](auto& t) { t.file = "rollout-0.2"; }},
      {"a file outside", [](auto& t) { t.file = "../escape"; }},
      {"an absolute path", [](auto& t) { t.file = "/etc/passwd"; }},
      {"a file of the store's own", [](auto& t) { t.file = ".1"; }},
      {"the folder itself", [](auto& t) { t.file = "."; }},
  };
  EXPECT_TRUE(check({&good, 1}));
  EXPECT_TRUE(is_there(good));
  std::ofstream(store_->folder() / "empty");
  std::ofstream(parent_.path() / "escape") << std::string(24, 'x');
  std::ofstream(store_->folder() / ".1") << std::string(24, 'x');
  for (const Case& c : cases) {
    actors::Tensor t = good;
    c.damage(t);
    const Status said = check({&t, 1});
    if (said)
      EXPECT_FALSE(is_there(t)) << c.what;
    else
      EXPECT_EQ(said.error().code, ErrorCode::InvalidInput) << c.what;
  }
  const std::vector<actors::Tensor> twice = {good, good};
  EXPECT_FALSE(check(twice));
  EXPECT_FALSE(check(std::vector<actors::Tensor>(17, good)));
}

TEST_F(ShmTensorsTest, ResponsesOfAMessageCannotShareAFile) {
  const actors::Tensor mine = written("a"), other = written("b");
  std::set<std::string> named;
  EXPECT_TRUE(store_->check({&mine, 1}, named));
  EXPECT_TRUE(store_->check({&other, 1}, named));
  const Status said = store_->check({&mine, 1}, named);
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().context, "tensor \"routes\": its file is that of another tensor");
}

TEST_F(ShmTensorsTest, AnErrorNamesWhatItFound) {
  actors::Tensor t = written();
  t.name = "hidden states";
  EXPECT_TRUE(check({&t, 1}).error().context.ends_with("found \"hidden states\""));
  t.name = ".hidden";
  EXPECT_TRUE(check({&t, 1})) << "only names of files have to begin otherwise";
  t.dtype = "complex64";
  EXPECT_EQ(check({&t, 1}).error().context,
            "tensor \".hidden\": expected type bool, int8, uint8, int16, uint16, float16, int32, "
            "uint32, float32, int64, uint64, float64, found \"complex64\"");
}

TEST_F(ShmTensorsTest, SpecialFilesAreNoTensors) {
  const fs::path folder = store_->folder();
  std::ofstream(parent_.path() / "elsewhere") << std::string(24, 'x');
  fs::create_symlink(parent_.path() / "elsewhere", folder / "link");
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* file : {"link", "folder", "pipe"}) {
    const actors::Tensor t{"routes", "int32", {2, 3}, 24, 7, file};
    EXPECT_FALSE(is_there(t)) << file;
  }
}

TEST_F(ShmTensorsTest, RolesLearnItsFolderAndHowLongTheyWait) {
  const actors::TensorPlace place = store_->place();
  EXPECT_EQ(place.folder, store_->folder());
  EXPECT_TRUE(place.servers.empty());
  EXPECT_EQ(place.wait, std::chrono::seconds(60));
}

TEST_F(ShmTensorsTest, AFileThatIsGoneShorterOrChangedIsNoticed) {
  std::vector<actors::Tensor> gone = {written("a")}, shorter = {written("b")};
  std::vector<actors::Tensor> changed = {written("c")};
  store_->take(changed);
  EXPECT_TRUE(store_->has(changed));
  std::ofstream(changed[0].file) << std::string(24, 'y');
  EXPECT_FALSE(store_->has(changed));
  store_->take(gone);
  store_->take(shorter);
  fs::remove(gone[0].file);
  fs::resize_file(shorter[0].file, 23);
  EXPECT_FALSE(store_->has(gone));
  EXPECT_FALSE(store_->has(shorter));
  std::vector<actors::Tensor> all = {changed[0], gone[0], shorter[0]};
  EXPECT_EQ(store_->find(all), std::vector<bool>({true, false, false})) << "bytes are not read";
  EXPECT_TRUE(store_->has({})) << "a response without tensors lacks none";
}

TEST_F(ShmTensorsTest, WhatNoResponseNamesIsRemoved) {
  std::vector<actors::Tensor> kept = {written("a")};
  store_->take(kept);
  written("of-an-engine-that-died");
  store_->keep_only(kept);
  EXPECT_TRUE(store_->has(kept));
  EXPECT_EQ(files_in(store_->folder()), 1U);
}

TEST_F(ShmTensorsTest, OnlyFilesOfItsOwnAreRemoved) {
  const fs::path other = parent_.path() / "of-someone-else";
  std::ofstream(other) << std::string(24, 'x');
  actors::Tensor t = written();
  t.file = other.string();  // as a checkpoint of another process names it
  EXPECT_FALSE(store_->has({&t, 1}));
  store_->remove({&t, 1});
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(ShmTensorsTest, TheFolderEndsWithItsStore) {
  fs::path folder;
  {
    const auto other = store_in(parent_.path());
    folder = other->folder();
    EXPECT_TRUE(fs::exists(folder));
  }
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(store_->folder()));
}

TEST_F(ShmTensorsTest, AFolderThatNoProcessHoldsIsRemovedByTheNextStore) {
  const fs::path abandoned = parent_.path() / "temper-tensors-killed";
  fs::create_directories(abandoned);
  std::ofstream(abandoned / ".owner");
  std::ofstream(abandoned / "left") << "behind";
  fs::create_directories(parent_.path() / "of-someone-else");
  const auto next = store_in(parent_.path());
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(parent_.path() / "of-someone-else"));
  EXPECT_TRUE(fs::exists(store_->folder())) << "this one is in use";
}

}  // namespace
}  // namespace temper::orchestrator
