// The reason for the end of a process: its status, and the last line of its output if that is more
// than information.
#include "orchestrator/run/processes/exit_reason.hpp"

#include "core/log.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace temper::orchestrator {
namespace {

std::string reason_with(std::string output) {
  ChildExit exit;
  exit.status = "killed by signal 9 (Killed)";
  exit.log_tail = std::move(output);
  return exit_reason(exit);
}

TEST(ExitReason, LeavesOutLinesThatOnlyInform) {
  const char* outputs[] = {
      "",
      "\n",
      "\n \n\t\n\r\n",
      "0.002126 info registered actor=trainer id=2\n",
      "0.002126 info registered actor=trainer id=2",
      "0.002126 info registered actor=trainer id=2\n\n  \n",
      "12345.678901 debug message received\r\n",
      "0.000000 info\n",
      "2.000000 error weights refused\n3.000000 info stopping\n",
      "Traceback (most recent call last):\nValueError: of an earlier step\n9.500000 info ready\n",
      "2025-11-26 08:09:10,123 INFO registered as trainer\n",
      "2025-11-26 08:09:10,123 DEBUG heartbeat\n",
      "2025-11-26 08:09:10,123 INFO error=0 warning=none\n",
  };
  for (const char* output : outputs)
    EXPECT_EQ(reason_with(output), "killed by signal 9 (Killed)") << output;
}

TEST(ExitReason, AppendsALineThatCanExplainTheEnd) {
  const std::pair<const char*, const char*> cases[] = {
      {"1.000000 info ready\n2.500000 warning disk almost full free=1MiB\n",
       "2.500000 warning disk almost full free=1MiB"},
      {"2.500000 error weights refused why=\"3 info missing\"",
       "2.500000 error weights refused why=\"3 info missing\""},
      {"2025-11-26 08:09:10,123 WARNING retrying\n", "2025-11-26 08:09:10,123 WARNING retrying"},
      {"2025-11-26 08:09:10,123 ERROR no such model\n",
       "2025-11-26 08:09:10,123 ERROR no such model"},
      {"2025-11-26 08:09:10,123 CRITICAL out of memory\n",
       "2025-11-26 08:09:10,123 CRITICAL out of memory"},
      {"Traceback (most recent call last):\n  File \"e.py\", line 3, in step\n"
       "    raise ValueError('x')\nValueError: x\n",
       "ValueError: x"},
      {"terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error\n\n",
       "  what():  CUDA error"},
      {"1.000000 info ready\nfree(): invalid pointer\n", "free(): invalid pointer"},
      {" 10%|#         | 1/10\r 20%|##        | 2/10\r\n", " 20%|##        | 2/10"},
      {"INFO: a library's own form\n", "INFO: a library's own form"},
      {"info registered\n", "info registered"},
      {"1.5 info five decimals are missing\n", "1.5 info five decimals are missing"},
      {".000000 info without seconds\n", ".000000 info without seconds"},
      {"1.000000 information lost\n", "1.000000 information lost"},
      {"1.000000\n", "1.000000"},
      {"{\"level\": \"info\", \"text\": \"of another program\"}\n",
       "{\"level\": \"info\", \"text\": \"of another program\"}"},
      {"2025-11-26 08:09:10.123 INFO a dot\n", "2025-11-26 08:09:10.123 INFO a dot"},
  };
  for (const auto& [output, line] : cases)
    EXPECT_EQ(reason_with(output), std::string("killed by signal 9 (Killed); ") + line);
}

TEST(ExitReason, RecognizesEveryLevelOfTheLog) {
  const RealClock clock;
  const std::pair<Log::Level, bool> levels[] = {{Log::Level::Debug, false},
                                                {Log::Level::Info, false},
                                                {Log::Level::Warning, true},
                                                {Log::Level::Error, true}};
  for (const auto& [level, explains] : levels) {
    std::ostringstream out;
    Log::to_stream(clock, out).write(level, "text", {{"key", "two words"}});
    EXPECT_EQ(!explaining_line(out.str()).empty(), explains) << out.str();
  }
}

TEST(ExitReason, BoundsALongLine) {
  const std::string reason = reason_with("RuntimeError: " + std::string(10'000, 'x') + "\n");
  EXPECT_TRUE(reason.starts_with("killed by signal 9 (Killed); RuntimeError: xxx"));
  EXPECT_TRUE(reason.ends_with("x... (10014 bytes)")) << reason;
  EXPECT_LT(reason.size(), 4200U);
  EXPECT_EQ(reason_with("1.000000 info " + std::string(10'000, 'x')),
            "killed by signal 9 (Killed)");
}

TEST(ExitReason, OfASuccessfulEndIsTheStatusAlone) {
  ChildExit exit;
  exit.success = true;
  exit.status = "exit code 0";
  exit.log_tail = "step 7 done\n";
  EXPECT_EQ(exit_reason(exit), "exit code 0");
}

}  // namespace
}  // namespace temper::orchestrator
