#include "core/log.hpp"

#include "core/files.hpp"
#include "core/ids.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace temper {
namespace {

using namespace std::chrono_literals;

TEST(Log, PutsTimeFirstThenConstantTextThenFields) {
  ManualClock clock;
  clock.set(Time(1500ms));
  std::ostringstream out;
  const Log log = Log::to_stream(clock, out);
  log.info("actor registered", {{"actor", "rollout-0"}, {"id", ActorId(3)}, {"cards", 2}});
  EXPECT_EQ(out.str(), "1.500000 info actor registered actor=rollout-0 id=3 cards=2\n");
}

TEST(Log, AValueCannotBreakItsLine) {
  const ManualClock clock;
  std::ostringstream out;
  Log::to_stream(clock, out).error("failed", {{"why", "a \"b\"\nc\x01"}, {"empty", ""}});
  EXPECT_EQ(out.str(), "0.000000 error failed why=\"a \\\"b\\\"\\nc\\x01\" empty=\"\"\n");
}

TEST(Log, LevelsBelowTheLeastAreNotWritten) {
  const ManualClock clock;
  std::ostringstream out;
  const Log log = Log::to_stream(clock, out, Log::Level::Warning);
  log.info("quiet");
  log.warning("loud");
  EXPECT_EQ(out.str(), "0.000000 warning loud\n");
  Log::discard().error("nowhere");
}

TEST(Log, AppendsEachLineToAFileAtOnce) {
  const ManualClock clock;
  const auto path = std::filesystem::temp_directory_path() /
                    ("temper-log-test-" + std::to_string(::getpid()) + ".log");
  for (const char* text : {"first", "second"})
    Log::to_file(clock, path).value().info(text);
  EXPECT_EQ(read_file(path).value(), "0.000000 info first\n0.000000 info second\n");
  std::filesystem::remove(path);
  EXPECT_FALSE(Log::to_file(clock, "/dev/null/nowhere.log"));
}

}  // namespace
}  // namespace temper
