// `temper protocol --json`, the source of the Python package. TEMPER_UPDATE_GOLDEN=1 rewrites
// python/protocol.json; then run python/tools/generate_messages.py to regenerate the messages.
#include "cli/run/protocol_command.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace temper::cli {
namespace {

TEST(ProtocolCommand, ThePythonPackageHasTheCurrentMessages) {
  const std::filesystem::path path = std::string(TEMPER_SOURCE_DIR) + "/python/protocol.json";
  if (const char* update = std::getenv("TEMPER_UPDATE_GOLDEN"); update && *update == '1') {
    ASSERT_TRUE(write_file_atomically(path, protocol_json()));
  }
  EXPECT_EQ(read_file(path).value(), protocol_json())
      << path << " is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace
}  // namespace temper::cli
