// `temper sweep` over real runs: folders, resuming, stopping.
#include "tests/system/harness.hpp"

#include <algorithm>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

class Sweep : public SystemTest {
 protected:
  Arguments arguments(const Arguments& more) const {
    Arguments all{"sweep",
                  config().string(),
                  "--over",
                  "staleness.bound=0,2",
                  "--over",
                  "staleness.rule=exact,aggregate",
                  "--out",
                  out().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  fs::path out() const { return folder() / "swept"; }
  fs::path run_of(const char* name) const { return out() / "runs" / name; }
};

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

constexpr std::array kRuns{"bound=0-rule=exact-seed1",
                           "bound=0-rule=aggregate-seed1",
                           "bound=2-rule=exact-seed1",
                           "bound=2-rule=aggregate-seed1"};

TEST_F(Sweep, RunsLeaveTheirFoldersAndAResumeRunsWhatIsMissing) {
  const Arguments short_runs{"--steps", "6"};
  const Ended first = temper(arguments(short_runs));
  ASSERT_EQ(first.status, 0) << first.output;
  for (const char* name : kRuns) {
    const Ended audit = temper({"audit", run_of(name).string()});
    EXPECT_EQ(audit.status, 0) << name << audit.output;
    const Ended watch = temper({"watch", run_of(name).string(), "--plain"});
    EXPECT_EQ(watch.status, 0) << name << watch.output;
    EXPECT_NE(watch.output.find("after 6 steps"), std::string::npos) << watch.output;
  }
  EXPECT_NE(first.output.find("| bound |      rule | time, s |"), std::string::npos)
      << first.output;
  for (const char* file : {"sweep.csv", "sweep.md", "sweep.svg"})
    EXPECT_GT(fs::file_size(out() / file), 0U) << file;
  EXPECT_EQ(std::ranges::count(read_file(out() / "sweep.csv").value(), '\n'), 5);
  EXPECT_EQ(processes(), std::vector<pid_t>{});

  EXPECT_EQ(temper(arguments(short_runs)).status, 2);  // the folders are there

  const std::string kept = read_file(run_of(kRuns[0]) / "events.log").value();
  fs::remove_all(run_of(kRuns[3]));
  const Ended second = temper(arguments({"--steps", "6", "--resume"}));
  EXPECT_EQ(second.status, 0) << second.output;
  EXPECT_EQ(occurrences(second.output, "from an earlier sweep"), 3U) << second.output;
  EXPECT_TRUE(fs::exists(run_of(kRuns[3]) / "events.log"));
  EXPECT_EQ(read_file(run_of(kRuns[0]) / "events.log").value(), kept);
}

}  // namespace
}  // namespace temper::test
