// Files created by others, and folders whose owner has exited.
#include "core/files.hpp"

#include "core/manifest.hpp"
#include "core/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>

namespace temper {
namespace {

namespace fs = std::filesystem;

ErrorCode code_of(const Error& error) {
  return error.code;
}

/// A file-system object found in place of a file, created by `make` under a name.
struct Special {
  const char* name;
  std::function<void(const fs::path& at)> make;
  ErrorCode in_folder = ErrorCode::InvalidInput;  ///< Expected result of open_to_read(folder,
                                                  ///< name).
  ErrorCode by_path = ErrorCode::InvalidInput;    ///< Expected result of open_to_read(path);
                                                  ///< Internal means success.
  ErrorCode to_write = ErrorCode::InvalidInput;
  static constexpr ErrorCode kOpens = ErrorCode::Internal;
};

class SpecialFiles : public ::testing::Test {
 protected:
  SpecialFiles() { outside("secret", "secret"); }

  void outside(const fs::path& name, const std::string& text) {
    EXPECT_TRUE(write_file_atomically(base_.path() / name, text));
  }

  std::vector<Special> kinds() {
    constexpr auto kOpens = Special::kOpens;
    const fs::path secret = base_.path() / "secret";
    const auto link = [](const fs::path& to) {
      return [to](const fs::path& at) { fs::create_symlink(to, at); };
    };
    return {
        {"a FIFO that nobody writes",
         [](const fs::path& at) { ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0); }},
        {"a FIFO whose writer is silent",
         [this](const fs::path& at) {
           ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0);
           held_.emplace_back(::open(at.c_str(), O_RDWR | O_CLOEXEC));
         }},
        {"a socket",
         [this](const fs::path& at) {
           held_.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
           sockaddr_un name{};
           name.sun_family = AF_UNIX;
           ASSERT_LT(at.string().size(), sizeof name.sun_path);
           std::ranges::copy(at.string(), name.sun_path);
           ASSERT_EQ(
               ::bind(held_.back().get(), reinterpret_cast<const sockaddr*>(&name), sizeof name),
               0);
         }},
        {"a folder", [](const fs::path& at) { fs::create_directory(at); }},
        {"a link to a file outside", link(secret), ErrorCode::InvalidInput, kOpens},
        {"a link to a file beside it", link("plain"), ErrorCode::InvalidInput, kOpens},
        {"a link to itself", link("special"), ErrorCode::InvalidInput, ErrorCode::InvalidInput},
        {"a link to nothing", link("/nowhere/x"), ErrorCode::InvalidInput, ErrorCode::NotFound},
        {"a link to a folder", link(base_.path())},
        {"a link to an endless device", link("/dev/zero")},
        {"a link to a terminal or none", link("/dev/tty"), ErrorCode::InvalidInput},
        {"a link to /dev/null", link("/dev/null")},
        {"a link to a pipe without a name",
         [this](const fs::path& at) {
           std::array<int, 2> ends{};
           ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
           held_.emplace_back(ends[0]);
           held_.emplace_back(ends[1]);
           fs::create_symlink("/proc/self/fd/" + std::to_string(ends[0]), at);
         }},
        {"a link to a file of /proc", link("/proc/self/status"), ErrorCode::InvalidInput, kOpens},
        {"nothing", [](const fs::path&) {}, ErrorCode::NotFound, ErrorCode::NotFound, kOpens},
        {"a file that is written under a lease",
         [this](const fs::path& at) {
           ::signal(SIGIO, SIG_IGN);
           held_.emplace_back(::open(at.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
           ASSERT_EQ(::fcntl(held_.back().get(), F_SETLEASE, F_WRLCK), 0);
         },
         ErrorCode::Unavailable,
         ErrorCode::Unavailable,
         ErrorCode::Unavailable},
    };
  }

  /// Creates a separate folder for each kind, with the special file in it.
  fs::path make(const Special& kind) {
    const fs::path folder = base_.path() / std::to_string(++made_);
    fs::create_directory(folder);
    EXPECT_TRUE(write_file_atomically(folder / "plain", "plain"));
    kind.make(folder / "special");
    return folder;
  }

  TemporaryFolder base_ = TemporaryFolder::create("t-").value();
  std::vector<FileDescriptor> held_;
  int made_ = 0;
};

TEST_F(SpecialFiles, AreNeverReadInAnUntrustedFolder) {
  for (const Special& kind : kinds()) {
    const UntrustedFolder folder(make(kind));
    const auto opened = open_to_read(folder, "special");
    ASSERT_FALSE(opened) << kind.name;
    EXPECT_EQ(code_of(opened.error()), kind.in_folder) << kind.name << opened.error().context;
    EXPECT_FALSE(FileReader::open(folder, "special")) << kind.name;
    EXPECT_FALSE(read_file(folder, "special")) << kind.name;
    EXPECT_EQ(read_file(folder, "plain").value(), "plain") << kind.name;
  }
}

TEST_F(SpecialFiles, NamedByTheUserNeverBlock) {
  for (const Special& kind : kinds()) {
    if (std::string_view(kind.name) == "a link to a terminal or none")
      continue;  // ENXIO or a device, depending on the environment
    const fs::path file = make(kind) / "special";
    const auto opened = open_to_read(file);
    if (kind.by_path == Special::kOpens) {
      EXPECT_TRUE(opened) << kind.name;
      continue;
    }
    ASSERT_FALSE(opened) << kind.name;
    EXPECT_EQ(code_of(opened.error()), kind.by_path) << kind.name << opened.error().context;
    EXPECT_FALSE(FileReader::open(file)) << kind.name;
    EXPECT_FALSE(read_file(file)) << kind.name;
    EXPECT_FALSE(sum_files(file.parent_path(), {"special"})) << kind.name;
    EXPECT_FALSE(check_file(file.parent_path(), {"special", 0, {}})) << kind.name;
  }
}

TEST_F(SpecialFiles, AreNeverWrittenThrough) {
  for (const Special& kind : kinds()) {
    const fs::path folder = make(kind);
    const fs::path file = folder / "special";
    const auto appended = AppendFile::open(file, 0);
    if (kind.to_write == Special::kOpens) {
      EXPECT_TRUE(appended) << kind.name;
      continue;
    }
    ASSERT_FALSE(appended) << kind.name;
    EXPECT_EQ(code_of(appended.error()), kind.to_write) << kind.name << appended.error().context;
    // An atomic write replaces a link, and uses a separate temporary name.
    fs::rename(file, folder / "kept.partial");
    EXPECT_FALSE(write_file_atomically(folder / "kept", "x")) << kind.name;
    EXPECT_FALSE(fs::exists(folder / "kept")) << kind.name;
    EXPECT_EQ(read_file(base_.path() / "secret").value(), "secret") << kind.name;
    EXPECT_EQ(read_file(folder / "plain").value(), "plain") << kind.name;
  }
}

TEST_F(SpecialFiles, LinksAreFollowedOnlyInThePathOfTheUser) {
  fs::create_directories(base_.path() / "runs/a/timeline");
  outside("runs/a/timeline/0.jsonl", "line");
  fs::create_directory_symlink(base_.path() / "runs", base_.path() / "mine");
  fs::create_directory_symlink(base_.path() / "runs/a", base_.path() / "runs/b");
  fs::create_directory_symlink(base_.path() / "runs/a/timeline", base_.path() / "runs/a/other");
  const fs::path mine = base_.path() / "mine";
  EXPECT_TRUE(open_to_read(UntrustedFolder(mine), "a/timeline/0.jsonl"));
  EXPECT_TRUE(open_to_read(UntrustedFolder(mine, "a"), "timeline/0.jsonl"));
  EXPECT_TRUE(open_to_read(UntrustedFolder(base_.path() / "runs/b"), "timeline/0.jsonl"));
  for (const auto& [folder, name] :
       std::vector<std::pair<UntrustedFolder, fs::path>>{{{mine, "b"}, "timeline/0.jsonl"},
                                                         {mine, "b/timeline/0.jsonl"},
                                                         {{mine, "a"}, "other/0.jsonl"},
                                                         {{mine, "a"}, "../a/timeline/0.jsonl"},
                                                         {{mine, "a/.."}, "a/timeline/0.jsonl"},
                                                         {{mine, "a"}, "timeline/../../../secret"},
                                                         {mine, base_.path() / "secret"},
                                                         {{mine, "a"}, "timeline"},
                                                         {mine, ""}}) {
    const auto opened = open_to_read(folder, name);
    ASSERT_FALSE(opened) << folder.path() << ' ' << name;
    EXPECT_EQ(opened.error().code, ErrorCode::InvalidInput) << opened.error().context;
  }
}

TEST_F(SpecialFiles, SparseFilesAreRejectedBeforeAllocating) {
  const fs::path file = base_.path() / "hole";
  const FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 40), 0);
  const auto read = read_file(UntrustedFolder(base_.path()), "hole");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::InvalidInput);
}

TEST(ReadFile, NamesAGitLfsPointer) {
  const auto folder = TemporaryFolder::create().value();
  const fs::path file = folder.path() / "model.safetensors";
  const std::string first = "version https://git-lfs.github.com/spec/v1";
  const std::pair<std::string, bool> cases[] = {
      {first + "\noid sha256:4d7a\nsize 12345\n", true},
      {first + "\next-0-foo sha256:4d7a\noid sha256:4d7a\nsize 12345\n", true},
      {first + "\n", true},
      {first, true},
      {first + "\r\noid sha256:4d7a\r\n", true},
      {"version https://git-lfs.github.com/spec/v2\n", true},
      {"", false},
      {"\n" + first + "\n", false},
      {" " + first, false},
      {"version https://git-lfs.github.com", false},
      {"version: 1\n", false},
      {"{\"about\": \"" + first + "\"}", false},
      {"# " + first, false},
  };
  for (const auto& [content, is_pointer] : cases) {
    ASSERT_TRUE(write_file_atomically(file, content));
    const auto read = read_file(file);
    ASSERT_EQ(!read.has_value(), is_pointer) << content;
    if (read)
      continue;
    EXPECT_EQ(read.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(read.error().context.find(file.string()), std::string::npos);
    EXPECT_NE(read.error().context.find("git lfs pull"), std::string::npos);
  }
}

TEST(WriteFileAtomically, WritesPartsInOrderAndKeepsTheOldFileIfOneFails) {
  const TemporaryFolder folder = TemporaryFolder::create("t-").value();
  const auto file = folder.path() / "parts";
  ASSERT_TRUE(write_file_atomically(file, [](const ByteSink& sink) {
    EXPECT_TRUE(sink("one "));
    return sink("two");
  }));
  EXPECT_EQ(read_file(file).value(), "one two");
  const Status failed = write_file_atomically(file, [](const ByteSink& sink) {
    EXPECT_TRUE(sink("three"));
    return Status(corrupt("no more"));
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().context, "no more");
  EXPECT_EQ(read_file(file).value(), "one two");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "parts.partial"));
}

TEST(ReadFile, FindsNothingBelowAFile) {
  const TemporaryFolder folder = TemporaryFolder::create().value();
  const fs::path file = folder.path() / "a";
  ASSERT_TRUE(write_file_atomically(file, "x"));
  const auto found = read_file(file / "b");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::NotFound);
  EXPECT_EQ(found.error().context, (file / "b").string() + " does not exist");
}

TEST(ReadFile, ReadsAFileOfUnknownSize) {
  const auto status = read_file("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Name:"), std::string::npos);
}

/// A pipe as in `temper check <(command)`.
TEST(ReadFile, ReadsAnUnnamedPipeUpToALimit) {
  const auto read_from = [](std::size_t bytes) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    FileDescriptor out(ends[0]);
    std::thread writer([&] {
      const FileDescriptor in(ends[1]);
      const std::string text(1 << 20, 'x');
      for (std::size_t left = bytes; left > 0;) {
        const ssize_t n = ::write(in.get(), text.data(), std::min(left, text.size()));
        if (n <= 0)
          return;
        left -= static_cast<std::size_t>(n);
      }
    });
    auto content = read_file("/proc/self/fd/" + std::to_string(out.get()));
    out.reset();  // a writer that continues gets an error
    writer.join();
    return content;
  };
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(read_from(100'000).value().size(), 100'000U);
  EXPECT_EQ(code_of(read_from(std::size_t{1} << 40).error()), ErrorCode::InvalidInput);
}

/// Unique to this process: killed tests leave folders behind.
std::string prefix() {
  return "temper-files-test-" + std::to_string(::getpid()) + "-";
}

TEST(TemporaryFolder, IsKeptWhileItsOwnerLives) {
  const auto folder = TemporaryFolder::create(prefix()).value();
  EXPECT_EQ(remove_abandoned_folders(prefix()), 0U);
  EXPECT_TRUE(fs::exists(folder.path()));
}

TEST(TemporaryFolder, IsRemovedAfterItsOwnerWasKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string ours = prefix();
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto folder = TemporaryFolder::create(ours).value();
    const std::string path = folder.path().string();
    static_cast<void>(!::write(ends[1], path.data(), path.size()));
    ::raise(SIGKILL);
  }
  ::waitpid(owner, nullptr, 0);
  std::array<char, 256> path{};
  ASSERT_GT(::read(ends[0], path.data(), path.size() - 1), 0);
  EXPECT_TRUE(fs::exists(path.data()));
  EXPECT_EQ(remove_abandoned_folders(prefix()), 1U);
  EXPECT_FALSE(fs::exists(path.data()));
}

TEST(TemporaryFolder, KeepsForeignFolders) {
  const auto folder = TemporaryFolder::create(prefix()).value();
  const fs::path foreign = folder.path().string() + "-foreign";
  fs::create_directory(foreign);
  EXPECT_EQ(remove_abandoned_folders(prefix()), 0U);
  EXPECT_TRUE(fs::exists(foreign));
  fs::remove(foreign);
}

}  // namespace
}  // namespace temper
