// TMPDIR is part of the path of a run's socket, and the system limits the length of that path.
#include "actors/transport/ipc_folder.hpp"

#include "actors/transport/socket.hpp"
#include "tests/actors/transport/defaults.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

/// Replaces TMPDIR for the lifetime of the object.
class TemporaryBase {
 public:
  explicit TemporaryBase(const std::string& folder) {
    if (const char* before = std::getenv("TMPDIR"))
      before_ = before;
    ::setenv("TMPDIR", folder.c_str(), 1);
  }
  TemporaryBase(const TemporaryBase&) = delete;
  TemporaryBase& operator=(const TemporaryBase&) = delete;
  ~TemporaryBase() {
    if (before_)
      ::setenv("TMPDIR", before_->c_str(), 1);
    else
      ::unsetenv("TMPDIR");
  }

 private:
  std::optional<std::string> before_;
};

std::string folder_of_length(std::size_t length) {
  return "/" + std::string(length - 1, 'x');
}

TEST(IpcFolder, AcceptsATmpdirThatFits) {
  // sun_path has 108 bytes: minus the NUL, minus "/temper-XXXXXX/orchestrator".
  for (const std::size_t length : {2U, 10U, 79U, 80U}) {
    const TemporaryBase base(folder_of_length(length));
    EXPECT_TRUE(check_ipc_folder()) << length;
  }
}

TEST(IpcFolder, NamesTheVariableAndTheLimitForALongTmpdir) {
  for (const std::size_t length : {81U, 82U, 100U, 107U, 108U, 120U, 255U, 4000U}) {
    const TemporaryBase base(folder_of_length(length));
    const Status fits = check_ipc_folder();
    ASSERT_FALSE(fits) << length;
    EXPECT_EQ(fits.error().code, ErrorCode::InvalidInput);
    for (const std::string& part :
         {std::string("TMPDIR"), std::to_string(length), std::string("80"), std::string("107")}) {
      EXPECT_NE(fits.error().context.find(part), std::string::npos) << fits.error().context;
    }
  }
}

TEST(IpcFolder, IgnoresARelativeTmpdir) {
  const TemporaryBase base(std::string(200, 'x'));
  EXPECT_TRUE(check_ipc_folder()) << "/tmp is used instead";
}

TEST(IpcFolder, BindsASocketAtTheLongestPathAndNotBeyond) {
  const test::TemporaryFolder folder;
  for (const auto& [length, fits] : {std::pair{80U, true}, {81U, false}}) {
    const std::string parent = folder.path().string() + "/";
    ASSERT_LT(parent.size(), length);
    const std::string path = parent + std::string(length - parent.size(), 'x');
    ASSERT_TRUE(fs::create_directory(path));
    const TemporaryBase base(path);
    const auto socket = RouterSocket::bind("ipc", kDefaults, kNoLog);
    EXPECT_EQ(socket.has_value(), fits) << length;
    if (!socket) {
      EXPECT_NE(socket.error().context.find("TMPDIR"), std::string::npos) << socket.error().context;
    }
  }
}

}  // namespace
}  // namespace temper::actors
