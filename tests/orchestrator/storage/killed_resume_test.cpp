// A process that is killed before any system call of a resume, until the log says that the run goes
// on and a little behind that: at each of these moments `audit` and `fsck` find nothing wrong, as
// nothing is, and the next resume and a repair do what they would have done.
#include "core/files.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/run/resume.hpp"
#include "tests/support/stored_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <map>

extern "C" {  // killed_at_call.cpp
void temper_kill_below(const char* folder, long at, int exchanges);
void temper_sync_nothing();
}

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::StoredRun;
using testing::StoredRunOptions;

/// What a driver and its observer do first.
void resume(const RunDir& run, const SchedulerConfig& config) {
  const auto point = find_resume_point(run, config);
  if (!point || !prepare_resume(run, *point))
    ::_exit(2);
  const auto recorder = RunRecorder::create(run.root()).value();
  const LogSummary log =
      scan_event_log(run.file("events.log"), [&](const Record& record, const LogPosition&) {
        recorder->feed(record);
        return Status();
      }).value();
  recorder->begin();
  EventLog events = EventLog::reopen(run.file("events.log"), log).value();
  const std::uint64_t back =
      point->rollback.checkpoint ? point->rollback.checkpoint->state.sequence : 0;
  const Record resumed{events.next_sequence(), events.last_time(), event::Resumed{back}, {}};
  if (!events.append(resumed) || !events.sync())
    ::_exit(3);
  recorder->feed(resumed);
  const Record next{
      events.next_sequence(), events.last_time() + Duration(1), event::DeadlineReached{}, {}};
  if (!events.append(next))
    ::_exit(3);
  recorder->feed(next);
}

struct Killed {
  const char* name;
  StoredRunOptions run;
  /// The newest checkpoint is lost: the updates behind the one before it become void.
  bool goes_far_back = false;
};

/// The run, as its process left it.
StoredRun run_of(const Killed& killed) {
  StoredRun run(killed.run);
  if (killed.goes_far_back)
    fs::remove_all(run.checkpoint(0));
  return run;
}

class AResumeThatIsKilled : public ::testing::TestWithParam<Killed> {
 protected:
  AResumeThatIsKilled() { temper_sync_nothing(); }
  fs::path root() const { return folder_ / "run"; }
  /// Which of the two finds something wrong, and what.
  std::string alarm() const {
    const auto audited = audit_run(root());
    if (!audited || !audited->violations.empty())
      return "audit: " + (audited ? audited->violations.front() : audited.error().context);
    const auto checked = check_run(root(), Repair::No);
    if (!checked)
      return "fsck: " + checked.error().context;
    std::string wrong;
    for (const CheckedFile& file : checked->files) {
      if (file.state != FileState::Whole && file.state != FileState::Aside &&
          file.state != FileState::Unchecked)
        wrong += fmt::format("fsck: {} {}: {}; ", name_of(file.state), file.name, file.what);
    }
    return wrong;
  }
  test::TemporaryFolder folder_;
};

TEST_P(AResumeThatIsKilled, BeforeAnySystemCallRaisesNoFalseAlarm) {
  const StoredRun stored = run_of(GetParam());
  int killed = 0;
  for (long at = 1;; ++at) {
    fs::remove_all(root());
    fs::copy(stored.root(), root(), fs::copy_options::recursive);
    ASSERT_EQ(alarm(), "") << "before";
    const pid_t child = ::fork();
    if (child == 0) {
      temper_kill_below(root().c_str(), at, 1);
      resume(RunDir(root()), stored.config());
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "call " << at;
    ASSERT_EQ(alarm(), "") << "killed before call " << at;
    // The next one goes on from there, and what it leaves is whole as well.
    const pid_t again = ::fork();
    if (again == 0) {
      resume(RunDir(root()), stored.config());
      ::_exit(0);
    }
    int ended = 0;
    ASSERT_EQ(::waitpid(again, &ended, 0), again);
    ASSERT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << "after call " << at;
    ASSERT_EQ(alarm(), "") << "resumed after it was killed before call " << at;
    if (WIFEXITED(status))
      break;
    ++killed;
  }
  EXPECT_GT(killed, 10);
  std::cout << killed << " kills\n";
}

TEST_P(AResumeThatIsKilled, LeavesNoFileShorterThanItWas) {
  const StoredRun stored = run_of(GetParam());
  const auto sizes = [&] {
    std::map<std::string, std::uintmax_t> out;
    for (const auto& entry : fs::directory_iterator(root())) {
      if (entry.is_regular_file() && entry.path().extension() != ".partial")
        out[entry.path().filename().string()] = entry.file_size();
    }
    return out;
  };
  fs::copy(stored.root(), root(), fs::copy_options::recursive);
  const auto before = sizes();
  {  // The log is replayed, and the run does not go on: its socket could not be had, for one.
    const auto recorder = RunRecorder::create(root()).value();
    ASSERT_TRUE(read_event_log(root() / "events.log", [&](const Record& record) {
      recorder->feed(record);
      EXPECT_EQ(sizes(), before);
      return Status();
    }));
    recorder->begin();
    ASSERT_TRUE(recorder->close({"run", 3, 0}));
  }
  EXPECT_EQ(sizes(), before);
  EXPECT_EQ(alarm(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Runs,
    AResumeThatIsKilled,
    ::testing::Values(
        Killed{"ThatEnded", {}},
        Killed{"ThatEndedWithFewCheckpoints", {.steps = 5, .checkpoint_every = 3}},
        Killed{"ThatWasKilledAtACheckpoint", {.killed_after = 0}},
        Killed{"ThatWasKilledBehindACheckpoint", {.killed_after = 2}},
        Killed{"ThatEndedAndGoesFarBack", {.steps = 4, .keep = 3}, true},
        Killed{"ThatWasKilledAndGoesFarBack", {.steps = 4, .keep = 3, .killed_after = 2}, true},
        Killed{"WithALogOfSeveralFiles", {.log_file_bytes = 600}}),
    [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace temper::orchestrator
