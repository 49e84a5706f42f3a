// Where a run goes on: the newest whole checkpoint of this history, and nothing is changed before
// it was read; what was lost is said.
#include "orchestrator/run/resume.hpp"

#include "core/files.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "tests/support/stored_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::StoredRun;
using testing::StoredRunOptions;

/// As a resume under the same configuration does.
Result<std::vector<std::string>> prepared(const StoredRun& run) {
  TEMPER_TRY(const ResumePoint point, find_resume_point(run.dir(), run.config()));
  return prepare_resume(run.dir(), point);
}

const StoredRunOptions kKilled{.steps = 4, .killed_after = 2};

/// Every file below a folder, with its content.
std::map<std::string, std::string> content(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      all[entry.path().lexically_relative(folder).string()] = read_file(entry.path()).value();
  }
  return all;
}

void flip(const fs::path& file, std::size_t byte) {
  std::string bytes = read_file(file).value();
  bytes.at(byte) ^= 4;
  ASSERT_TRUE(write_file_atomically(file, bytes));
}

void cut(const StoredRun& run, std::size_t position) {
  fs::resize_file(run.log(), static_cast<std::uintmax_t>(run.positions().at(position).bytes));
}

/// The place in positions() of the n-th newest checkpoint's record.
std::size_t record_of(const StoredRun& run, std::size_t n) {
  return run.checkpoints().at(n).mark->sequence + 1;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines)
    all += line + "\n";
  return all;
}

PolicyVersion version_of(const ResumePoint& point) {
  return point.rollback.checkpoint ? point.rollback.checkpoint->state.version : PolicyVersion(0);
}

TEST(Resume, GoesOnFromTheNewestCheckpointAndChangesNothing) {
  const StoredRun run(kKilled);
  const auto before = content(run.root());
  const auto said = prepared(run);
  ASSERT_TRUE(said) << said.error().context;
  EXPECT_TRUE(said->empty()) << joined(*said);
  EXPECT_EQ(content(run.root()), before);
  const ResumePoint point = find_resume_point(run.dir(), run.config()).value();
  EXPECT_EQ(point.rollback.checkpoint->folder, run.checkpoint(0));
}

TEST(Resume, GoesOnWithTheSettingsThatTheLogHasARecordOf) {
  const StoredRun run(kKilled);
  const RunDir dir = run.dir();
  const std::string recorded = read_file(dir.file("config.yaml")).value();
  EXPECT_EQ(unrecorded_changes(dir).value(), 0U);
  EXPECT_EQ(recorded_config(dir), dir.file("config.yaml"));
  // Changes of processes that ended before the log knew.
  ASSERT_TRUE(dir.replace_config(recorded + "# first\n"));
  ASSERT_TRUE(dir.replace_config(recorded + "# second\n"));
  EXPECT_EQ(unrecorded_changes(dir).value(), 2U);
  EXPECT_EQ(read_file(recorded_config(dir)).value(), recorded);
  ASSERT_TRUE(dir.restore_config(2));
  EXPECT_EQ(read_file(dir.file("config.yaml")).value(), recorded);
  EXPECT_EQ(unrecorded_changes(dir).value(), 0U);
}

TEST(Resume, ADamagedLogIsAnErrorAndNothingIsTouched) {
  const StoredRun run(kKilled);
  flip(run.log(), fs::file_size(run.log()) / 10);
  const auto before = content(run.root());
  const auto said = prepared(run);
  ASSERT_FALSE(said);
  EXPECT_NE(said.error().context.find("damaged at byte"), std::string::npos);
  EXPECT_EQ(content(run.root()), before);
}

TEST(Resume, ATornRecordIsCutOffKeptAndSaid) {
  const StoredRun run(kKilled);
  fs::resize_file(run.log(), fs::file_size(run.log()) - 3);
  const auto said = prepared(run);
  ASSERT_TRUE(said) << said.error().context;
  EXPECT_NE(joined(*said).find("events.log.cut-1"), std::string::npos) << joined(*said);
  EXPECT_TRUE(fs::exists(run.root() / "events.log.cut-1"));
  EXPECT_TRUE(prepared(run)->empty()) << "now it is whole";
}

TEST(Resume, ADamagedNewestCheckpointIsPassedOverForTheOneBeforeIt) {
  for (const char* file : {"orchestrator.msgpack", "trainer.json", "manifest"}) {
    for (const bool removed : {false, true}) {
      const StoredRun run(kKilled);
      const fs::path newest = run.checkpoint(0), older = run.checkpoint(1);
      if (removed)
        fs::remove(newest / file);
      else
        flip(newest / file, 0);
      const auto said = prepared(run);
      ASSERT_TRUE(said) << said.error().context;
      EXPECT_NE(joined(*said).find(newest.filename().string() + " is skipped"), std::string::npos)
          << joined(*said);
      EXPECT_NE(joined(*said).find("resumes from checkpoint " + older.filename().string()),
                std::string::npos)
          << joined(*said);
      EXPECT_EQ(find_resume_point(run.dir(), run.config())->rollback.checkpoint->folder, older);
      EXPECT_TRUE(fs::exists(newest.string() + ".damaged-1"));
    }
  }
}

TEST(Resume, AnEmptyCheckpointFolderIsPassedOver) {
  const StoredRun run(kKilled);
  for (const auto& entry : fs::directory_iterator(run.checkpoint(0)))
    fs::remove(entry.path());
  ASSERT_TRUE(prepared(run));
  EXPECT_EQ(version_of(find_resume_point(run.dir(), run.config()).value()), PolicyVersion(2));
}

TEST(Resume, ACheckpointThatTheLogDoesNotReachIsVoid) {
  const StoredRun run(kKilled);
  const fs::path newest = run.checkpoint(0);
  cut(run, record_of(run, 0) - 1);
  const auto said = prepared(run);
  ASSERT_TRUE(said) << said.error().context;
  EXPECT_NE(joined(*said).find("events.log does not have it"), std::string::npos) << joined(*said);
  EXPECT_TRUE(fs::exists(newest.string() + ".void-1"));
  EXPECT_EQ(version_of(find_resume_point(run.dir(), run.config()).value()), PolicyVersion(2));
}

TEST(Resume, ACheckpointOfAnotherHistoryIsVoid) {
  const StoredRun run(kKilled);
  const FoundCheckpoint newest = run.checkpoints().at(0);
  CheckpointState state = Checkpoints::load(newest).value().state;
  LogPosition other = newest.mark->log;
  other.chain ^= 1;  // as many records, and other ones
  const auto partial = run.dir().checkpoints().begin(state.version).value();
  ASSERT_TRUE(write_file_atomically(partial / "trainer.json", "3"));
  ASSERT_TRUE(run.dir().checkpoints().complete(state, other, 2));
  const auto said = prepared(run);
  ASSERT_TRUE(said) << said.error().context;
  EXPECT_NE(joined(*said).find("has changed since it was saved"), std::string::npos)
      << joined(*said);
}

TEST(Resume, NeverBeginsAnewWhileThereAreCheckpoints) {
  const StoredRun run(kKilled);
  cut(run, record_of(run, 1) - 1);
  const auto before = content(run.root());
  const auto said = prepared(run);
  ASSERT_FALSE(said);
  EXPECT_NE(said.error().context.find("no checkpoint in"), std::string::npos);
  EXPECT_NE(said.error().context.find("--repair"), std::string::npos);
  EXPECT_EQ(content(run.root()), before);
}

TEST(Resume, BeginsAnewWhereThereAreNone) {
  const StoredRun run({.steps = 3, .checkpoint_every = 1, .killed_after = 1});
  fs::remove_all(run.root() / "checkpoints");
  fs::create_directory(run.root() / "checkpoints");
  EXPECT_EQ(version_of(find_resume_point(run.dir(), run.config()).value()), PolicyVersion(0));
}

TEST(Resume, AnInputThatWasChangedIsAnError) {
  const StoredRun run(kKilled);
  flip(run.root() / "config.yaml", 2);
  const auto said = prepared(run);
  ASSERT_FALSE(said);
  EXPECT_NE(said.error().context.find("config.yaml is damaged"), std::string::npos);
}

TEST(Resume, MoreStepsAndAWiderBoundAreGoneOnWithOtherActorsAreNot) {
  const StoredRun run(kKilled);
  SchedulerConfig wider = run.config();
  wider.steps += 5;
  wider.staleness_bound += 1;
  wider.deadlines.train = std::chrono::hours(2);
  EXPECT_TRUE(find_resume_point(run.dir(), wider));
  SchedulerConfig other = run.config();
  other.actors.pop_back();
  EXPECT_FALSE(find_resume_point(run.dir(), other));
  SchedulerConfig narrower = run.config();
  narrower.staleness_bound = 0;
  EXPECT_FALSE(find_resume_point(run.dir(), narrower));
  SchedulerConfig fewer = run.config();
  fewer.steps = 1;
  const auto refused = find_resume_point(run.dir(), fewer);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find(
                "steps: expected at least 3, the step of the checkpoint to resume from, found 1"),
            std::string::npos)
      << refused.error().context;
}

TEST(Resume, MoreEnginesAreGoneOnWithBehindTheActorsThatThereWere) {
  const StoredRun run(kKilled);
  SchedulerConfig more = run.config();
  const ActorSpec first = more.actors.front();
  ASSERT_EQ(first.role, actors::RoleKind::Rollout);
  ActorSpec another = first;
  another.name = "rollout-9";
  more.actors.insert(more.actors.begin(), another);
  const ResumePoint grown = find_resume_point(run.dir(), more).value();
  ASSERT_EQ(grown.actors.size(), run.config().actors.size() + 1);
  EXPECT_EQ(grown.actors.front().name, first.name) << "an id means the same as before";
  EXPECT_EQ(grown.actors.back().name, "rollout-9");
  SchedulerConfig none = run.config();
  std::erase_if(none.actors,
                [](const ActorSpec& a) { return a.role == actors::RoleKind::Rollout; });
  EXPECT_FALSE(find_resume_point(run.dir(), none));
}

TEST(Resume, TheLogIsToldOfAnotherConfigurationAndOnlyOfThat) {
  const StoredRun run(kKilled);
  HistoryReader reader(run.dir().checkpoints());
  ASSERT_TRUE(scan_event_log(run.log(), [&](const Record& record, const LogPosition& behind) {
    reader.feed(record, behind);
    return Status();
  }));
  EXPECT_FALSE(reader.resumed(4, run.config(), {}).config);
  SchedulerConfig wider = run.config();
  wider.staleness_bound += 1;
  const event::Resumed resumed = reader.resumed(4, wider, {{"staleness.bound", "1", "2"}});
  ASSERT_TRUE(resumed.config);
  EXPECT_EQ((*resumed.config)->staleness_bound, wider.staleness_bound);
  EXPECT_EQ(resumed.changes.size(), 1U);
}

TEST(Resume, TakesOtherWeightsButNoOtherNumberOfProblems) {
  ProblemPlan problems;
  problems.sources = {{"a", "a", 5}, {"b", "b", 7}};
  StoredRunOptions options = kKilled;
  options.problems = problems;
  const StoredRun run(options);
  SchedulerConfig other = run.config();
  other.problems.sources[1].weights = {{0, 3}, {9, 1}};
  other.problems.set_aside.easy = 0.9;
  EXPECT_TRUE(find_resume_point(run.dir(), other));
  other.problems.sources[1].problems = 8;
  const auto refused = find_resume_point(run.dir(), other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context,
            "task.sources.b: the run started with 7 training problems, found 8; restore its data, "
            "or start a new run with --from");
}

TEST(Resume, TakesNoOtherTeachers) {
  ProblemPlan problems;
  problems.sources = {{"a", "a", 5}, {"b", "b", 7}};
  problems.teachers = TeacherPlan{{"x", "y"}, {{0}, {1}}};
  StoredRunOptions options = kKilled;
  options.problems = problems;
  const StoredRun run(options);
  EXPECT_TRUE(find_resume_point(run.dir(), run.config()));
  SchedulerConfig other = run.config();
  other.problems.teachers->of_problems[1] = {0};
  const auto refused = find_resume_point(run.dir(), other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context,
            "task.sources.b: the run started with other teachers of its problems; restore its "
            "data, or start a new run with --from");
  other.problems.teachers.reset();
  EXPECT_FALSE(find_resume_point(run.dir(), other));
}

TEST(Resume, TakesTheProblemsOfARunThatRecordedNone) {
  const StoredRun run(kKilled);
  SchedulerConfig now = run.config();
  now.problems.sources = {{"", "jsonl", 100}};
  EXPECT_TRUE(find_resume_point(run.dir(), now));
}

TEST(Resume, OnlyARunThatFailedBeforeItsFirstUpdateIsStillborn) {
  const StoredRun ended;
  EXPECT_FALSE(is_stillborn(ended.log()));
  const StoredRun killed(kKilled);
  EXPECT_FALSE(is_stillborn(killed.log()));
  const test::TemporaryFolder folder;
  {
    EventLog log = EventLog::create(folder / "events.log").value();
    ASSERT_TRUE(log.append({0, Time{}, event::Started{}, {}}));
    EXPECT_FALSE(is_stillborn(folder / "events.log")) << "it may be going on";
    ASSERT_TRUE(log.append(
        {1,
         Time{},
         event::Aborted{"", false},
         {command::Finish{false, false, reason_with(ReasonKind::Aborted, "no worker")}}}));
  }
  EXPECT_TRUE(is_stillborn(folder / "events.log"));
}

TEST(Fsck, MissesTheCheckpointsAndOutputsThatTheLogTellsOf) {
  const StoredRun run;
  const auto states = [&] {
    std::map<std::string, FileState> all;
    const auto report = check_run(run.root(), Repair::No);
    for (const CheckedFile& file : report->files)
      all[file.name] = file.state;
    return all;
  };
  fs::remove_all(run.root() / "checkpoints");
  fs::remove(run.root() / "outputs.manifest");
  EXPECT_EQ(states()["checkpoints/step-000003"], FileState::Missing);
  EXPECT_EQ(states()["outputs.manifest"], FileState::Missing);
  fs::remove(run.root() / "certificates.jsonl");
  EXPECT_EQ(states()["certificates.jsonl"], FileState::Missing);
  EXPECT_FALSE(check_run(run.root(), Repair::No)->whole());
}

TEST(Fsck, AWholeRunIsWholeWhereverItEnded) {
  for (const StoredRunOptions& options : {StoredRunOptions{}, kKilled}) {
    const StoredRun run(options);
    const FsckReport report = check_run(run.root(), Repair::No).value();
    for (const CheckedFile& file : report.files)
      EXPECT_EQ(file.what, "") << file.name;
    EXPECT_TRUE(report.whole());
    EXPECT_TRUE(report.resumable) << report.next;
  }
}

TEST(Fsck, RepairTurnsFlippedBitsBackWhereverTheyAre) {
  const StoredRun run(kKilled);
  const auto before = content(run.root());
  const auto third = static_cast<std::size_t>(run.positions()[3].bytes);
  flip(run.log(), 3);                                                                  // the title
  flip(run.log(), third + 1);                                                          // a length
  flip(run.log(), static_cast<std::size_t>(run.positions()[5].bytes) + kFrameHeader);  // a record
  flip(run.root() / "config.yaml", 7);
  flip(run.checkpoint(0) / "orchestrator.msgpack", 11);
  const FsckReport report = check_run(run.root(), Repair::Yes).value();
  EXPECT_TRUE(report.whole());
  EXPECT_EQ(report.repaired.size(), 5U) << joined(report.repaired);
  for (const auto& [name, bytes] : before)
    EXPECT_EQ(read_file(run.root() / name).value(), bytes) << name;
  EXPECT_TRUE(fs::exists(run.root() / "events.log.damaged-3"));
}

TEST(Fsck, RepairCutsALogOffAtItsDamageAndKeepsEverything) {
  const StoredRun run(kKilled);
  const auto byte = static_cast<std::size_t>(run.positions()[record_of(run, 0) - 1].bytes);
  flip(run.log(), byte + kFrameHeader);
  flip(run.log(), byte + kFrameHeader + 1);
  const std::string before = read_file(run.log()).value();
  const fs::path newest = run.checkpoint(0), older = run.checkpoint(1);
  EXPECT_FALSE(check_run(run.root(), Repair::No)->resumable);
  const FsckReport report = check_run(run.root(), Repair::Yes).value();
  EXPECT_TRUE(report.whole());
  EXPECT_TRUE(report.resumable) << report.next;
  EXPECT_EQ(read_file(run.log()).value() + read_file(run.root() / "events.log.cut-1").value(),
            before);
  EXPECT_TRUE(fs::exists(newest.string() + ".void-1"));
  EXPECT_EQ(find_resume_point(run.dir(), run.config())->rollback.checkpoint->folder, older);
}

TEST(Fsck, RepairMakesDerivedFilesAnewAsTheyWere) {
  const StoredRun run;
  auto before = content(run.root());
  for (const char* name : {"certificates.jsonl", "summary.json"}) {
    flip(run.root() / name, 30);
    flip(run.root() / name, 31);
  }
  EXPECT_FALSE(check_run(run.root(), Repair::No)->whole());
  const FsckReport report = check_run(run.root(), Repair::Yes).value();
  EXPECT_TRUE(report.whole());
  for (const auto& [name, bytes] : before)
    EXPECT_EQ(read_file(run.root() / name).value(), bytes) << name;
  EXPECT_TRUE(fs::exists(run.root() / "summary.json.damaged-1"));
}

TEST(Fsck, AFolderWithoutARunIsAnError) {
  const StoredRun run;
  EXPECT_TRUE(check_run(run.root(), Repair::Yes));
  EXPECT_FALSE(check_run(run.root() / "logs", Repair::No));
}

}  // namespace
}  // namespace temper::orchestrator
