// Which program wrote a log, and what a program makes of the log of another one.
#include "core/deflate.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/msgpack.hpp"
#include "core/version.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/record/log_reader.hpp"
#include "orchestrator/record/replay.hpp"
#include "tests/support/stored_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::StoredRun;

/// The log of a run of the first release whose log has this format.
fs::path released_log(std::uint32_t format) {
  return fs::path(TEMPER_SOURCE_DIR) / "tests/golden/log" / fmt::format("format_{}.log", format);
}

Result<LogSummary> replayed(const fs::path& log) {
  Replay replay;
  return read_event_log(log, [&](const Record& record) { return replay.feed(record); });
}

/// All records of a log, as if `program` had written them into one file.
std::string written_by(const std::string& program, const fs::path& log) {
  std::string file = log_header({});
  std::uint64_t chain = 0;
  const auto add = [&](const std::string& payload, std::uint32_t flags) {
    std::string frame(kFrameHeader, '\0');
    frame += payload;
    chain = seal_frame(frame, flags, chain);
    file += frame;
  };
  add(encode(LogOrigin{program, kLogFormat}), kNamesProgram);
  Packer packer;
  packer.begin();
  std::uint32_t flags = kBegins;
  EXPECT_TRUE(read_event_log(log, [&](const Record& record) {
    std::string packed;
    packer.pack(encode(record), packed);
    add(packed, std::exchange(flags, 0));
    return Status();
  }));
  return file;
}

TEST(LogFormat, AReplayOfEachEarlierFormatSaysSoInOneLine) {
  for (std::uint32_t format = 3; format < kLogFormat; ++format) {
    const auto result = replayed(released_log(format));
    ASSERT_FALSE(result) << format;
    EXPECT_EQ(result.error().code, ErrorCode::Unsupported);
    const std::string& said = result.error().context;
    EXPECT_EQ(std::ranges::count(said, '\n'), 0) << said;
    EXPECT_NE(said.find("older"), std::string::npos) << said;
    EXPECT_NE(said.find(program_version()), std::string::npos) << said;
    EXPECT_EQ(said.find("differs"), std::string::npos) << said;
  }
}

/// A change of the scheduler after which this fails needs a new format (docs/decisions/0013).
TEST(LogFormat, TheReleasedLogOfThisFormatIsReplayedAndAuditedClean) {
  const auto summary = replayed(released_log(kLogFormat));
  ASSERT_TRUE(summary) << summary.error().context;
  ASSERT_EQ(summary->written_by.size(), 1U);
  EXPECT_TRUE(summary->written_by.front().starts_with("0.2.0")) << summary->written_by.front();
  Auditor auditor;
  ASSERT_TRUE(read_event_log(released_log(kLogFormat), [&](const Record& record) {
    auditor.feed(record);
    return Status();
  }));
  EXPECT_EQ(auditor.report().violations, std::vector<std::string>());
  EXPECT_EQ(auditor.report().steps, 3U);
}

TEST(LogFormat, ThatIsNewerIsNotCalledOlder) {
  std::string header = log_header({});
  header[7] = static_cast<char>('0' + kLogFormat + 1);
  const std::uint64_t check = hash64(std::string_view(header).substr(0, 24));
  std::memcpy(header.data() + 24, &check, sizeof check);
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "events.log", header));
  const auto result = replayed(folder / "events.log");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Unsupported);
  EXPECT_NE(result.error().context.find("newer"), std::string::npos) << result.error().context;
}

TEST(LogFormat, EveryFileNamesTheProgramThatWroteIt) {
  const StoredRun run({.log_file_bytes = 800});
  ASSERT_GT(run.log_files(), 2U);
  for (std::size_t n = 1; n <= run.log_files(); ++n) {
    const std::string file = read_file(run.log_file(n)).value();
    const auto frame = parse_header(std::string_view(file).substr(kLogHeader));
    ASSERT_TRUE(frame && frame->names_program) << n;
    EXPECT_EQ(decode<LogOrigin>(file.substr(kLogHeader + kFrameHeader, frame->length)).value(),
              (LogOrigin{std::string(program_version()), kLogFormat}));
  }
  EXPECT_EQ(replayed(run.log())->written_by, std::vector{std::string(program_version())});
}

TEST(LogFormat, AResumeNamesTheProgramThatGoesOn) {
  const StoredRun run({.killed_after = 3});
  ASSERT_TRUE(write_file_atomically(run.log(), written_by("0.0.9", run.log())));
  const LogSummary before = replayed(run.log()).value();
  EXPECT_EQ(before.written_by, std::vector<std::string>{"0.0.9"});
  EventLog log = EventLog::reopen(run.log(), before).value();
  ASSERT_TRUE(log.append({before.records, before.last_time, event::StopRequested{}, {}}));
  const auto after =
      scan_event_log(run.log(), [](const Record&, const LogPosition&) { return Status(); }).value();
  EXPECT_EQ(after.written_by, (std::vector<std::string>{"0.0.9", std::string(program_version())}));
  EXPECT_EQ(after.hash, log.hash());
  EXPECT_EQ(after.position, log.position());
}

TEST(LogFormat, TheLogHashCoversRecordsAloneAndNotTheProgram) {
  const StoredRun run;
  const std::uint64_t hash = replayed(run.log())->hash;
  for (const std::string program : {"0.0.9", "7.2.1 (0123abcd)", ""}) {
    ASSERT_TRUE(write_file_atomically(run.log(), written_by(program, run.log())));
    EXPECT_EQ(replayed(run.log())->hash, hash) << program;
  }
}

TEST(LogFormat, ACommandThatDiffersIsToldWithTheProgramThatWroteIt) {
  const StoredRun run;
  test::TemporaryFolder folder;
  const fs::path other = folder / "events.log";
  {
    EventLog log = EventLog::create(other).value();
    ASSERT_TRUE(read_event_log(run.log(), [&](Record record) {
      if (record.sequence == 0)
        record.commands.clear();
      return log.append(record);
    }));
  }
  const auto same = replayed(other);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code, ErrorCode::Corrupt);
  EXPECT_EQ(same.error().context.find("written by"), std::string::npos) << same.error().context;
  ASSERT_TRUE(write_file_atomically(other, written_by("0.0.9", other)));
  const auto foreign = replayed(other);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().context.find("written by temper 0.0.9"), std::string::npos)
      << foreign.error().context;
}

TEST(LogFormat, AFrameThatNamesNoProgramIsDamage) {
  const StoredRun run;
  std::string file = log_header({});
  std::string frame(kFrameHeader, '\0');
  frame += "no msgpack";
  seal_frame(frame, kNamesProgram, 0);
  ASSERT_TRUE(write_file_atomically(run.log(), file + frame));
  const auto result = replayed(run.log());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Corrupt);
}

}  // namespace
}  // namespace temper::orchestrator
