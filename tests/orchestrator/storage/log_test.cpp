// events.log on its way to the disk and back: what is torn and what is damaged, and what a reader
// and a resume make of either.
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/record/replay.hpp"
#include "tests/support/stored_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::Damaged;
using testing::StoredRun;

LogSummary scanned(const fs::path& log) {
  const auto summary =
      scan_event_log(log, [](const Record&, const LogPosition&) { return Status(); });
  EXPECT_TRUE(summary) << summary.error().context;
  return *summary;
}

Status read(const fs::path& log) {
  const auto summary = read_event_log(log, [](const Record&) { return Status(); });
  return summary ? Status() : Status(summary.error());
}

void append(const fs::path& file, std::string_view bytes) {
  AppendFile out = AppendFile::open(file).value();
  ASSERT_TRUE(out.append(bytes));
}

/// One record after the other, as a test wants them.
class HandMade {
 public:
  explicit HandMade(const std::vector<Record>& records) {
    LogWriter log = LogWriter::create(path(), {}).value();
    for (const Record& record : records)
      EXPECT_TRUE(log.append(encode(record)));
  }
  fs::path path() const { return folder_ / "events.log"; }

 private:
  test::TemporaryFolder folder_;
};

Record record_at(std::uint64_t sequence, std::int64_t ns) {
  return {sequence, Time(Duration(ns)), event::DeadlineReached{}, {}};
}

TEST(EventLog, IsReadBackAsItWasWrittenToTheLastByte) {
  const StoredRun run;
  const LogSummary log = scanned(run.log());
  EXPECT_EQ(log.end.kind, LogEnd::Kind::Whole);
  EXPECT_EQ(log.records + 1, run.positions().size());
  EXPECT_EQ(log.end.whole_bytes, static_cast<std::int64_t>(fs::file_size(run.log())));
  EXPECT_EQ(log.position, run.positions().back());
}

TEST(EventLog, ThatEndsInsideARecordIsTornAndReadableToThere) {
  const StoredRun run;
  const auto last = static_cast<std::size_t>(run.positions().back().bytes -
                                             std::next(run.positions().rbegin())->bytes);
  for (const std::size_t missing : {std::size_t{1}, kFrameHeader / 2, last - 1}) {
    const auto cut = Damaged::truncated(run.log(), fs::file_size(run.log()) - missing);
    const LogSummary log = scanned(run.log());
    EXPECT_EQ(log.end.kind, LogEnd::Kind::Torn);
    EXPECT_EQ(log.records + 2, run.positions().size());
    EXPECT_EQ(log.end.whole_bytes, std::next(run.positions().rbegin())->bytes);
    EXPECT_TRUE(read(run.log())) << "no error: this is what a crash leaves";
  }
}

TEST(EventLog, ThatEndsInZerosIsTorn) {
  const StoredRun run;
  append(run.log(), std::string(5000, '\0'));
  EXPECT_EQ(scanned(run.log()).end.kind, LogEnd::Kind::Torn);
}

TEST(EventLog, AFlippedBitWithWholeRecordsBehindItIsDamageThatNamesItsByte) {
  const StoredRun run;
  const LogPosition third = run.positions()[3];
  const auto flip =
      Damaged::flipped(run.log(), static_cast<std::size_t>(third.bytes) + kFrameHeader);
  const LogSummary log = scanned(run.log());
  EXPECT_EQ(log.end.kind, LogEnd::Kind::Damaged);
  EXPECT_EQ(log.end.goes_on_at, (LogPlace{run.log(), run.positions()[4].bytes}));
  const Status status = read(run.log());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Corrupt);
  for (const std::string& part : {run.log().string(),
                                  fmt::format("record 3 is damaged at byte {}", third.bytes),
                                  std::string("temper fsck")})
    EXPECT_NE(status.error().context.find(part), std::string::npos) << status.error().context;
}

TEST(EventLog, ALengthThatWasFlippedIsDamageAndNoLongRecord) {
  const StoredRun run;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    const auto at = static_cast<std::size_t>(run.positions()[2].bytes) + byte;
    const auto flip = Damaged::flipped(run.log(), at);
    EXPECT_EQ(scanned(run.log()).end.goes_on_at, (LogPlace{run.log(), run.positions()[3].bytes}));
  }
}

TEST(EventLog, ARecordThatIsDoubledMissingOrMovedIsDamage) {
  const StoredRun run;
  const std::string log = read_file(run.log()).value();
  const auto frame = [&](std::size_t n) {
    const auto begin = static_cast<std::size_t>(run.positions()[n].bytes);
    return log.substr(begin, static_cast<std::size_t>(run.positions()[n + 1].bytes) - begin);
  };
  const std::string head = log.substr(0, static_cast<std::size_t>(run.positions()[3].bytes));
  for (const std::string& now : {head + frame(2) + frame(3) + frame(4),
                                 head + frame(4) + frame(5),
                                 head + frame(4) + frame(3) + frame(5)}) {
    ASSERT_TRUE(write_file_atomically(run.log(), now));
    const LogSummary found = scanned(run.log());
    EXPECT_TRUE(found.damaged());
    EXPECT_EQ(found.records, 3U);
  }
}

TEST(EventLog, TimeThatGoesBackIsAnErrorAndNoAbort) {
  const HandMade log({record_at(0, 5), record_at(1, 7), record_at(2, 6), record_at(3, 8)});
  Replay replay;
  const auto result = read_event_log(log.path(), [](const Record&) { return Status(); });
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().context.find("the time of record 2 is before"), std::string::npos)
      << result.error().context;
}

TEST(EventLog, ANumberThatJumpsIsAnError) {
  const HandMade log({record_at(0, 5), record_at(2, 7)});
  const Status status = read(log.path());
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("record 1 has sequence number 2"), std::string::npos);
}

/// How it is refused; it must be.
std::string refusal(const std::string& bytes) {
  test::TemporaryFolder folder;
  EXPECT_TRUE(write_file_atomically(folder / "events.log", bytes));
  const Status status = read(folder / "events.log");
  EXPECT_EQ(status ? ErrorCode::Io : status.error().code, ErrorCode::Unsupported);
  return status ? "" : status.error().context;
}

TEST(EventLog, OfTheFirstFormatIsRefusedByName) {
  std::string frame(8, '\0');
  encode_to(frame, record_at(0, 1));
  const std::string payload = frame.substr(8);
  const auto length = static_cast<std::uint32_t>(payload.size());
  const auto check = static_cast<std::uint32_t>(hash64(payload));
  std::memcpy(frame.data(), &length, 4);
  std::memcpy(frame.data() + 4, &check, 4);
  EXPECT_NE(refusal(frame).find("format 1"), std::string::npos);
}

TEST(EventLog, OfTheSecondFormatIsRefusedByName) {
  std::string frame(kFrameHeader, '\0');
  encode_to(frame, record_at(0, 1));
  seal_frame(frame, false, 0);
  EXPECT_NE(refusal("temperL2" + frame).find("format 2"), std::string::npos);
}

TEST(EventLog, AFlippedBitInItsTitleIsDamageAndNoOtherFormat) {
  const StoredRun run;
  for (std::size_t byte = 0; byte < kLogHeader; ++byte) {
    const auto flip = Damaged::flipped(run.log(), byte);
    EXPECT_TRUE(scanned(run.log()).damaged()) << byte;
  }
}

TEST(EventLog, WhatIsCutOffIsKept) {
  const StoredRun run;
  const std::string before = read_file(run.log()).value();
  const auto byte = static_cast<std::size_t>(run.positions()[3].bytes);
  std::string damaged = before;
  damaged[byte + kFrameHeader] ^= 1;
  ASSERT_TRUE(write_file_atomically(run.log(), damaged));
  const auto kept = cut_event_log(run.log(), scanned(run.log()));
  ASSERT_TRUE(kept && kept->size() == 1);
  EXPECT_EQ(kept->front().filename(), "events.log.cut-1");
  EXPECT_EQ(read_file(run.log()).value() + read_file(kept->front()).value(), damaged);
  EXPECT_EQ(scanned(run.log()).end.kind, LogEnd::Kind::Whole);
  EXPECT_TRUE(cut_event_log(run.log(), scanned(run.log()))->empty());
}

TEST(EventLog, GoesOnAfterItsLastRecord) {
  const HandMade file({record_at(0, 5), record_at(1, 7)});
  EventLog log = EventLog::reopen(file.path(), scanned(file.path())).value();
  ASSERT_TRUE(log.append(record_at(2, 9)));
  const LogSummary now = scanned(file.path());
  EXPECT_EQ(now.records, 3U);
  EXPECT_EQ(now.hash, log.hash());
  EXPECT_EQ(now.end.kind, LogEnd::Kind::Whole);
}

TEST(EventLog, ThatWasRemovedWhileItIsWrittenIsAnError) {
  test::TemporaryFolder folder;
  EventLog log = EventLog::create(folder / "events.log").value();
  EXPECT_TRUE(log.check_named());
  fs::remove(folder / "events.log");
  const Status status = log.check_named();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("was deleted"), std::string::npos);
}

/// While it lives, no file grows beyond `largest`: a full disk.
class FullDisk {
 public:
  explicit FullDisk(std::uintmax_t largest) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{largest, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*ignored_)(int);
};

TEST(EventLog, WritesNothingBehindARecordThatWasLostEvenWhenThereIsRoomAgain) {
  for (const auto when : {LogWriting::When::Gathered, LogWriting::When::Through}) {
    test::TemporaryFolder folder;
    const fs::path file = folder / "events.log";
    EventLog log = EventLog::create(file, {.when = when}).value();
    ASSERT_TRUE(log.append(record_at(0, 5)));
    ASSERT_TRUE(log.flush());
    {
      const FullDisk full(fs::file_size(file) + 1);
      EXPECT_FALSE(log.append(record_at(1, 6)) && log.flush());
    }
    EXPECT_FALSE(log.append(record_at(log.next_sequence(), 7)) && log.sync());
    const LogSummary found = scanned(file);
    EXPECT_EQ(found.end.kind, LogEnd::Kind::Whole) << found.end.what;
    EXPECT_EQ(found.records, 1U);
  }
}

TEST(EventLog, WritesNothingIntoAFileWhoseHeaderCouldNotBeWritten) {
  test::TemporaryFolder folder;
  const fs::path file = folder / "events.log";
  EventLog log = EventLog::create(file, {.file_bytes = 1}).value();
  {
    const FullDisk full(kLogHeader - 1);
    EXPECT_FALSE(log.append(record_at(0, 5)));
  }
  EXPECT_FALSE(log.append(record_at(0, 6)));
  const LogSummary found = scanned(file);
  EXPECT_FALSE(found.damaged()) << found.end.what;
  EXPECT_EQ(found.records, 0U);
}

bool mention(const std::vector<std::string>& violations, std::string_view text) {
  return std::ranges::any_of(
      violations, [&](const std::string& v) { return v.find(text) != std::string::npos; });
}

TEST(AuditOfARun, SaysThatTheLogIsDamagedAndIsNotClean) {
  const StoredRun run;
  EXPECT_EQ(audit_run(run.root()).value().violations, std::vector<std::string>{});
  const auto flip = Damaged::flipped(run.log(), fs::file_size(run.log()) / 2);
  const AuditReport report = audit_run(run.root()).value();
  EXPECT_TRUE(mention(report.violations, "damaged at byte"));
}

TEST(AuditOfARun, ATornRecordIsSaidAndIsNoViolation) {
  const StoredRun run({.killed_after = 3});
  const auto cut = Damaged::truncated(run.log(), fs::file_size(run.log()) - 2);
  const AuditReport report = audit_run(run.root()).value();
  EXPECT_EQ(report.violations, std::vector<std::string>{});
  EXPECT_NE(report.log_end.find("is truncated"), std::string::npos);
}

TEST(AuditOfARun, ALogThatIsShorterThanWhenTheRunEndedIsAViolation) {
  const StoredRun run;
  const auto cut = Damaged::truncated(
      run.log(), static_cast<std::size_t>(std::next(run.positions().rbegin())->bytes));
  const auto violations = audit_run(run.root()).value().violations;
  EXPECT_TRUE(mention(violations, "does not end as at the end of the run"));
}

}  // namespace
}  // namespace temper::orchestrator
