// read_file() on what is no file, and folders whose owner is gone.
#include "core/files.hpp"

#include "core/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

namespace temper {
namespace {

namespace fs = std::filesystem;

std::string refusal(const fs::path& path) {
  const auto read = read_file(path);
  EXPECT_FALSE(read);
  return read ? "" : read.error().context;
}

TEST(ReadFile, ADeviceOrAFolderIsRefusedBeforeItIsRead) {
  EXPECT_EQ(refusal("/dev/urandom"), "/dev/urandom is a device, not a file");
  EXPECT_EQ(refusal("/dev/zero"), "/dev/zero is a device, not a file");
  EXPECT_EQ(refusal("/tmp"), "/tmp is a folder, not a file");
}

TEST(ReadFile, AGitLfsPointerIsNamedInThePlaceOfItsFile) {
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

TEST(ReadFile, AFileWithoutASizeIsReadToItsEnd) {
  const auto status = read_file("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Name:"), std::string::npos);
}

TEST(ReadFile, APipeIsReadToItsEndButNotForEver) {
  const auto folder = TemporaryFolder::create().value();
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto write = [&](std::size_t bytes) {
    const FileDescriptor fd(::open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
    const std::string text(1 << 20, 'x');
    for (std::size_t left = bytes; left > 0;) {
      const ssize_t n = ::write(fd.get(), text.data(), std::min(left, text.size()));
      if (n <= 0)
        return;
      left -= static_cast<std::size_t>(n);
    }
  };
  ::signal(SIGPIPE, SIG_IGN);
  std::thread some([&] { write(100'000); });
  EXPECT_EQ(read_file(pipe).value().size(), 100'000U);
  some.join();
  std::thread endless([&] { write(std::size_t{1} << 40); });
  EXPECT_NE(refusal(pipe).find("holds more than"), std::string::npos);
  endless.join();
}

/// Of this process alone: other tests leave folders behind too, where they are killed.
std::string prefix() {
  return "temper-files-test-" + std::to_string(::getpid()) + "-";
}

TEST(TemporaryFolder, IsLeftAloneWhileItsOwnerLives) {
  const auto folder = TemporaryFolder::create(prefix()).value();
  EXPECT_EQ(remove_abandoned_folders(prefix()), 0U);
  EXPECT_TRUE(fs::exists(folder.path()));
}

TEST(TemporaryFolder, IsRemovedByTheNextWhenItsOwnerWasKilled) {
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

TEST(TemporaryFolder, ThatIsNoneOfOursIsLeftAlone) {
  const auto folder = TemporaryFolder::create(prefix()).value();
  const fs::path foreign = folder.path().string() + "-foreign";
  fs::create_directory(foreign);
  EXPECT_EQ(remove_abandoned_folders(prefix()), 0U);
  EXPECT_TRUE(fs::exists(foreign));
  fs::remove(foreign);
}

}  // namespace
}  // namespace temper
