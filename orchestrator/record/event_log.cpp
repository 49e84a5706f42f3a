#include "orchestrator/record/event_log.hpp"

#include "core/msgpack.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Why this record cannot be the next one; empty: it can.
std::string objection(const Record& record, const LogSummary& before) {
  if (record.sequence != before.records)
    return fmt::format("record {} carries number {}", before.records, record.sequence);
  if (record.time < before.last_time)
    return fmt::format("the time of record {} is before that of the one before it", before.records);
  return {};
}

}  // namespace

Result<EventLog> EventLog::create(const std::filesystem::path& path, Writing writing) {
  if (std::filesystem::exists(path)) {
    return invalid_input(path.string() + " exists; choose another run_dir or use --resume");
  }
  TEMPER_TRY(AppendFile file, AppendFile::open(path));
  TEMPER_TRY_STATUS(file.append(kLogTitle));
  EventLog log(std::move(file));
  log.writing_ = writing;
  return log;
}

Result<EventLog> EventLog::reopen(const std::filesystem::path& path, const LogSummary& summary) {
  TEMPER_TRY(AppendFile file, AppendFile::open(path));
  if (file.size() != summary.end.whole_bytes) {
    return corrupt(fmt::format("{} has {} bytes, {} were read; is another process writing it?",
                               path.string(),
                               file.size(),
                               summary.end.whole_bytes));
  }
  EventLog log(std::move(file));
  log.next_sequence_ = summary.records;
  log.last_time_ = summary.last_time;
  log.hash_ = summary.hash;
  return log;
}

Status EventLog::append(const Record& record) {
  TEMPER_CHECK(record.sequence == next_sequence_, "records are appended in order");
  if (file_)
    TEMPER_TRY_STATUS(write(record));
  ++next_sequence_;
  last_time_ = record.time;
  return {};
}

Status EventLog::write(const Record& record) {
  // The frame is built in place: a hole for the header, then the payload.
  const std::size_t begin = buffer_.size();
  buffer_.append(kFrameHeader, '\0');
  encode_to(buffer_, record);
  const std::size_t payload = buffer_.size() - begin - kFrameHeader;
  const std::uint64_t hash = seal_frame(buffer_.data() + begin, payload, hash_);
  if (writing_ == Writing::Through || buffer_.size() >= kGather)
    TEMPER_TRY_STATUS(flush());
  hash_ = hash;
  return {};
}

Status EventLog::flush() {
  if (writing_ == Writing::Gathered)
    TEMPER_TRY_STATUS(check_named());
  const Status status = buffer_.empty() ? Status() : file_->append(buffer_);
  buffer_.clear();
  return status;
}

Status EventLog::sync() {
  TEMPER_TRY_STATUS(flush());
  return file_ ? file_->sync() : Status();
}

Status EventLog::check_named() const {
  return file_ ? file_->check_named() : Status();
}

Result<LogSummary> scan_event_log(const std::filesystem::path& path, const LogVisitor& visit) {
  TEMPER_TRY(FrameReader reader, FrameReader::open(path));
  LogSummary summary;
  for (;;) {
    const std::int64_t begin = std::max<std::int64_t>(reader.position().bytes, kLogTitle.size());
    TEMPER_TRY(const auto payload, reader.next());
    if (!payload)
      break;
    const auto record = decode<Record>(*payload);
    const std::string wrong =
        record
            ? objection(*record, summary)
            : fmt::format("record {} cannot be read: {}", summary.records, record.error().context);
    if (!wrong.empty()) {
      TEMPER_TRY_STATUS(reader.stop(wrong));
      break;
    }
    if (auto status = visit(*record, reader.position()); !status) {
      return std::move(status).error().within(
          fmt::format("{}: record {} at byte {}", path.string(), summary.records, begin));
    }
    summary.hash = reader.position().chain;
    summary.last_time = record->time;
    ++summary.records;
  }
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
      "{}: record {} is {}. Nothing was changed; `temper fsck {}` says what can be saved",
      path.string(),
      summary.records,
      summary.end.what,
      path.parent_path().string()));
}

Result<std::optional<std::filesystem::path>> cut_event_log(const std::filesystem::path& path,
                                                           const LogSummary& summary) {
  if (summary.end.kind == LogEnd::Kind::Whole)
    return std::optional<std::filesystem::path>();
  const std::filesystem::path kept = free_name(path.string() + ".cut");
  TEMPER_TRY_STATUS(copy_tail(path, summary.end.whole_bytes, kept));
  TEMPER_TRY(AppendFile file, AppendFile::open(path, summary.end.whole_bytes));
  if (summary.end.whole_bytes == 0)
    TEMPER_TRY_STATUS(file.append(kLogTitle));
  TEMPER_TRY_STATUS(file.sync());
  return std::optional(kept);
}

}  // namespace temper::orchestrator
