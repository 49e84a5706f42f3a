#include "core/progress_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace temper {
namespace {

using namespace std::chrono_literals;

TEST(ProgressLine, WritesALinePerStageAndPeriodToAFile) {
  std::ostringstream out;
  ManualClock clock;
  clock.set(Time(5s));
  ProgressLine progress(out, ProgressLine::Output::File, clock, "temper measure");
  for (int i = 0; i < 250; ++i) {  // 25 s
    progress.show("first", "3 of 9");
    clock.advance(100ms);
  }
  progress.show("second");
  progress.clear();
  EXPECT_EQ(out.str(),
            "temper measure: first: 3 of 9\n"
            "temper measure: first: 3 of 9 (10 s)\n"
            "temper measure: first: 3 of 9 (20 s)\n"
            "temper measure: second\n");
}

TEST(ProgressLine, RedrawsAndClearsOneLineOnATerminal) {
  std::ostringstream out;
  const ManualClock clock;
  {
    ProgressLine progress(out, ProgressLine::Output::Terminal, clock, "temper measure");
    progress.show("first", "1 of 2");
    progress.show("first", "1 of 2");
    progress.show("first", "2 of 2");
  }
  EXPECT_EQ(out.str(),
            "\r\x1b[Kfirst: 1 of 2"
            "\r\x1b[Kfirst: 2 of 2"
            "\r\x1b[K");
}

}  // namespace
}  // namespace temper
