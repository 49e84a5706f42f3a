// A log of several files: every reader goes through all of them, a place is named with its file,
// and a resume and a repair hold across their borders.
#include "core/files.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/record/replay.hpp"
#include "orchestrator/run/resume.hpp"
#include "tests/support/stored_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>

namespace temper::orchestrator {
namespace {

/// As a resume under the same configuration does.
Result<std::vector<std::string>> prepared_files(const testing::StoredRun& run) {
  TEMPER_TRY(const ResumePoint point, find_resume_point(run.dir(), run.config()));
  return prepare_resume(run.dir(), point);
}

namespace fs = std::filesystem;
using testing::Damaged;
using testing::StoredRun;
using testing::StoredRunOptions;

constexpr std::int64_t kSmall = 600;
const StoredRunOptions kKilledInSmallFiles{.steps = 4, .killed_after = 2, .log_file_bytes = kSmall};

LogSummary scanned_files(const fs::path& log) {
  return scan_event_log(log, [](const Record&, const LogPosition&) { return Status(); }).value();
}

/// All files of the log, one behind the other.
std::string bytes_of(const StoredRun& run) {
  std::string all;
  for (std::size_t n = 1; n <= run.log_files(); ++n)
    all += read_file(run.log_file(n)).value();
  return all;
}

TEST(LogFiles, EachIsCompleteWhereItHasItsBytesAndTheNextGoesOn) {
  const StoredRun run({.log_file_bytes = kSmall});
  ASSERT_GT(run.log_files(), 3U);
  for (std::size_t n = 1; n < run.log_files(); ++n)
    EXPECT_TRUE(std::cmp_greater_equal(fs::file_size(run.log_file(n)), kSmall));
  const LogSummary log = scanned_files(run.log());
  EXPECT_EQ(log.end.kind, LogEnd::Kind::Whole);
  EXPECT_EQ(log.records + 1, run.positions().size());
  EXPECT_EQ(log.position, run.positions().back());
  EXPECT_EQ(log.end.file, run.log_files());
}

TEST(LogFiles, SayTheSameAsOneFile) {
  const StoredRun many({.log_file_bytes = kSmall}), one;
  ASSERT_EQ(one.log_files(), 1U);
  EXPECT_EQ(scanned_files(many.log()).hash, scanned_files(one.log()).hash);
}

TEST(LogFiles, AllReadersGoThroughAllOfThem) {
  const StoredRun run({.log_file_bytes = kSmall});
  const std::uint64_t records = scanned_files(run.log()).records;
  const AuditReport audit = audit_run(run.root()).value();
  EXPECT_EQ(audit.records, records);
  EXPECT_EQ(audit.violations, std::vector<std::string>{});
  Replay replay;
  ASSERT_TRUE(read_event_log(run.log(), [&](const Record& r) { return replay.feed(r); }));
  EXPECT_EQ(replay.events(), records);
  EXPECT_EQ(read_run(run.root())->summary.steps, 3U);
  const FsckReport report = check_run(run.root(), Repair::No).value();
  EXPECT_TRUE(report.whole());
  for (std::size_t n = 1; n <= run.log_files(); ++n) {
    const auto name = run.log_file(n).filename().string();
    const auto file = std::ranges::find(report.files, name, &CheckedFile::name);
    ASSERT_NE(file, report.files.end()) << name;
    EXPECT_EQ(file->state, FileState::Whole);
  }
}

TEST(LogFiles, DamageIsNamedWithItsFileAndByteWhicheverItIs) {
  const StoredRun run({.log_file_bytes = kSmall});
  for (std::size_t n = 1; n <= run.log_files(); ++n) {
    const fs::path file = run.log_file(n);
    const auto flip = Damaged::flipped(file, kLogHeader + kFrameHeader);
    const LogSummary log = scanned_files(run.log());
    ASSERT_TRUE(log.damaged());
    EXPECT_EQ(log.end.file, n);
    EXPECT_EQ(log.end.whole_bytes, static_cast<std::int64_t>(kLogHeader));
    const std::string said = damage_error(run.log(), log).context;
    EXPECT_NE(said.find(file.string() + ": record"), std::string::npos) << said;
    EXPECT_NE(
        said.find(fmt::format("damaged at byte {} of {}", kLogHeader, file.filename().string())),
        std::string::npos)
        << said;
    const auto audit = audit_run(run.root());  // where no record is left: an error
    EXPECT_TRUE(!audit || !audit->violations.empty());
  }
}

TEST(LogFiles, ADamagedHeaderIsFoundAndOneBitOfItIsTurnedBack) {
  for (std::size_t byte = 0; byte < kLogHeader; byte += 5) {
    const StoredRun run(kKilledInSmallFiles);
    const std::string before = bytes_of(run);
    std::string file = read_file(run.log_file(2)).value();
    file[byte] ^= 16;
    ASSERT_TRUE(write_file_atomically(run.log_file(2), file));
    EXPECT_FALSE(prepared_files(run));
    EXPECT_TRUE(check_run(run.root(), Repair::Yes)->whole());
    EXPECT_TRUE(bytes_of(run) == before);
    EXPECT_TRUE(fs::exists(run.root() / "events.log.2.damaged-1"));
  }
}

TEST(LogFiles, OneThatIsMissingIsDamageThatNamesIt) {
  const StoredRun run(kKilledInSmallFiles);
  fs::remove(run.log_file(2));
  const LogSummary log = scanned_files(run.log());
  ASSERT_TRUE(log.damaged());
  EXPECT_NE(log.end.what.find("events.log.2, which follows it, is missing"), std::string::npos)
      << log.end.what;
  EXPECT_EQ(log.end.goes_on_at->file, run.log_file(3));
  EXPECT_FALSE(prepared_files(run));
}

TEST(LogFiles, OnesThatChangedPlacesAreDamage) {
  const StoredRun run(kKilledInSmallFiles);
  fs::rename(run.log_file(2), run.root() / "x");
  fs::rename(run.log_file(3), run.log_file(2));
  fs::rename(run.root() / "x", run.log_file(3));
  EXPECT_TRUE(scanned_files(run.log()).damaged());
}

TEST(LogFiles, OneThatIsCutShortBeforeAnotherIsDamageAndNotTorn) {
  const StoredRun run(kKilledInSmallFiles);
  for (const std::size_t missing : {std::size_t{1}, std::size_t{400}}) {
    const auto cut = Damaged::truncated(run.log_file(2), fs::file_size(run.log_file(2)) - missing);
    EXPECT_TRUE(scanned_files(run.log()).damaged());
    EXPECT_FALSE(find_resume_point(run.dir(), run.config()));
  }
}

TEST(LogFiles, AResumeGoesOnWhereverTheLastOneWasCutShort) {
  const StoredRun run(kKilledInSmallFiles);
  const std::size_t last = run.log_files();
  const std::uint64_t records = scanned_files(run.log()).records;
  for (std::size_t length = 0; length < fs::file_size(run.log_file(last)); ++length) {
    const auto cut = Damaged::truncated(run.log_file(last), length);
    const LogSummary log = scanned_files(run.log());
    ASSERT_FALSE(log.damaged()) << length;
    ASSERT_TRUE(cut_event_log(run.log(), log));
    EventLog again = EventLog::reopen(run.log(), scanned_files(run.log())).value();
    ASSERT_TRUE(again.append({log.records, Time::max(), event::StopRequested{}, {}}));
    const LogSummary now = scanned_files(run.log());
    EXPECT_EQ(now.end.kind, LogEnd::Kind::Whole) << now.end.what;
    EXPECT_EQ(now.records, log.records + 1);
    EXPECT_EQ(now.position, again.position());
    EXPECT_EQ(now.hash, again.hash());
    EXPECT_LE(log.records, records);
  }
}

TEST(LogFiles, ARepairCutsAtTheDamageAndKeepsTheFilesBehindIt) {
  const StoredRun run(kKilledInSmallFiles);
  const std::size_t last = run.log_files();
  std::string file = read_file(run.log_file(last - 1)).value();
  file[kLogHeader + kFrameHeader] ^= 3;  // two bits
  ASSERT_TRUE(write_file_atomically(run.log_file(last - 1), file));
  const std::string before = bytes_of(run);
  const std::string name = run.log_file(last - 1).filename().string(),
                    behind = run.log_file(last).filename().string();
  EXPECT_FALSE(check_run(run.root(), Repair::No)->resumable);
  const FsckReport report = check_run(run.root(), Repair::Yes).value();
  EXPECT_TRUE(report.whole());
  EXPECT_EQ(run.log_files(), last - 1);
  EXPECT_EQ(bytes_of(run) + read_file(run.root() / (name + ".cut-1")).value() +
                read_file(run.root() / (behind + ".cut-1")).value(),
            before);
}

TEST(LogFiles, ARunDoesNotBeginWhereAnyOfThemIs) {
  const StoredRun run({.log_file_bytes = kSmall});
  fs::remove(run.log());
  EXPECT_FALSE(EventLog::create(run.log()));
}

TEST(LogFiles, OfAFolderThatCannotBeListedAreNotTakenForOne) {
  const StoredRun run(kKilledInSmallFiles);
  // The first comparison of an error code must come before the limit: UBSan opens a pipe to check
  // the type of the error category, and without one takes it for an invalid object.
  EXPECT_EQ(count_log_files(run.root() / "no folder" / "events.log").value(), 0U);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};  // nothing more can be opened
  ::setrlimit(RLIMIT_NOFILE, &none);
  const auto count = count_log_files(run.log());
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(count);
  EXPECT_NE(count.error().context.find(run.root().string()), std::string::npos);
}

TEST(LogFiles, NamesThatAreNotOursDoNotCount) {
  const StoredRun run;
  for (const char* name : {"events.log.02", "events.log.x", "events.log.2.cut-1", "events.log.1"})
    ASSERT_TRUE(write_file_atomically(run.root() / name, "x"));
  EXPECT_EQ(run.log_files(), 1U);
}

}  // namespace
}  // namespace temper::orchestrator
