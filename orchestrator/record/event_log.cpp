#include "orchestrator/record/event_log.hpp"

#include "core/hash.hpp"
#include "core/msgpack.hpp"
#include "core/version.hpp"
#include "orchestrator/record/log_reader.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Why this record cannot follow `before`; empty if it can.
std::string objection(const Record& record, const LogSummary& before) {
  if (record.sequence != before.records)
    return fmt::format("record {} has sequence number {}", before.records, record.sequence);
  if (record.time < before.last_time)
    return fmt::format("the time of record {} is before that of the previous record",
                       before.records);
  return {};
}

}  // namespace

Result<EventLog> EventLog::create(const std::filesystem::path& path, const LogWriting& writing) {
  TEMPER_TRY(LogWriter writer, LogWriter::create(path, writing));
  return EventLog(std::move(writer));
}

Result<EventLog> EventLog::reopen(const std::filesystem::path& path,
                                  const LogSummary& summary,
                                  const LogWriting& writing) {
  TEMPER_TRY(LogWriter writer,
             LogWriter::reopen(
                 path, writing, {summary.end.file, summary.end.whole_bytes, summary.position}));
  EventLog log(std::move(writer));
  log.next_sequence_ = summary.records;
  log.last_time_ = summary.last_time;
  log.hash_ = summary.hash;
  return log;
}

Status EventLog::append(const Record& record) {
  TEMPER_CHECK(record.sequence == next_sequence_, "records are appended in order");
  if (writer_) {
    encoded_.clear();
    encode_to(encoded_, record);
    TEMPER_TRY_STATUS(writer_->append(encoded_));
    hash_ = hash64(encoded_, hash_);
  }
  ++next_sequence_;
  last_time_ = record.time;
  return {};
}

Status EventLog::flush() {
  return writer_ ? writer_->flush() : Status();
}

Status EventLog::sync() {
  return writer_ ? writer_->sync() : Status();
}

Status EventLog::check_named() const {
  return writer_ ? writer_->check_named() : Status();
}

Result<LogSummary> scan_event_log(const std::filesystem::path& path, const LogVisitor& visit) {
  TEMPER_TRY(LogReader reader, LogReader::open(path));
  LogSummary summary;
  for (;;) {
    TEMPER_TRY(const auto bytes, reader.next());
    if (!bytes)
      break;
    const auto record = decode<Record>(*bytes);
    const std::string wrong =
        record
            ? objection(*record, summary)
            : fmt::format("record {} cannot be read: {}", summary.records, record.error().context);
    if (!wrong.empty()) {
      TEMPER_TRY_STATUS(reader.stop(wrong));
      break;
    }
    const std::string& program = reader.origin().program;
    if (summary.written_by.empty() || summary.written_by.back() != program)
      summary.written_by.push_back(program);
    if (auto status = visit(*record, reader.position()); !status) {
      return std::move(status).error().within(fmt::format(
          "{}: record {} at byte {}{}",
          reader.place().file.string(),
          summary.records,
          reader.place().byte,
          program == program_version()
              ? ""
              : fmt::format(
                    ", written by temper {} (this is temper {})", program, program_version())));
    }
    summary.hash = hash64(*bytes, summary.hash);
    summary.last_time = record->time;
    ++summary.records;
  }
  summary.position = reader.position();
  summary.end = reader.end();
  return summary;
}

Result<LogSummary> read_event_log(const std::filesystem::path& path,
                                  const std::function<Status(const Record&)>& visit) {
  TEMPER_TRY(const LogSummary summary,
             scan_event_log(path, [&](const Record& r, const LogPosition&) { return visit(r); }));
  if (summary.damaged())
    return damage_error(path, summary);
  return summary;
}

Error damage_error(const std::filesystem::path& path, const LogSummary& summary) {
  return corrupt(fmt::format(
      "{}: record {} is {}. Nothing was changed; run `temper fsck {}` to see what can be recovered",
      log_file(path, summary.end.file).string(),
      summary.records,
      summary.end.what,
      path.parent_path().string()));
}

Result<std::vector<std::filesystem::path>> cut_event_log(const std::filesystem::path& path,
                                                         const LogSummary& summary) {
  std::vector<std::filesystem::path> kept;
  // Starts with the last file, so that an interruption leaves the whole part of the log without a
  // gap.
  TEMPER_TRY(const std::size_t files, count_log_files(path));
  for (std::size_t n = files; n > summary.end.file; --n) {
    const std::filesystem::path file = log_file(path, n);
    if (!std::filesystem::exists(file))
      continue;
    kept.push_back(free_name(file.string() + ".cut"));
    TEMPER_TRY_STATUS(rename_durably(file, kept.back()));
  }
  if (summary.end.whole_bytes < summary.end.file_bytes) {
    const std::filesystem::path file = log_file(path, summary.end.file);
    kept.push_back(free_name(file.string() + ".cut"));
    TEMPER_TRY_STATUS(copy_tail(file, summary.end.whole_bytes, kept.back()));
    TEMPER_TRY(AppendFile cut, AppendFile::open(file, summary.end.whole_bytes));
    TEMPER_TRY_STATUS(cut.sync());
  }
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace temper::orchestrator
