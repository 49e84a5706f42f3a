#include "orchestrator/record/event_log.hpp"

#include "core/hash.hpp"
#include "core/msgpack.hpp"

#include <fmt/format.h>

#include <cstring>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kHeader = 8;

std::uint32_t read_u32(const char* p) {
  std::uint32_t x = 0;
  std::memcpy(&x, p, sizeof x);
  return x;
}

/// The payload of the whole frame at the front of `rest`; empty if there is none.
std::string_view front_payload(std::string_view rest) {
  if (rest.size() < kHeader)
    return {};
  const std::uint32_t length = read_u32(rest.data());
  if (length == 0 || rest.size() - kHeader < length)
    return {};
  const std::string_view payload = rest.substr(kHeader, length);
  if (static_cast<std::uint32_t>(hash64(payload)) != read_u32(rest.data() + 4))
    return {};
  return payload;
}

}  // namespace

Result<EventLog> EventLog::create(const std::filesystem::path& path, Writing writing) {
  if (std::filesystem::exists(path)) {
    return invalid_input(path.string() + " exists; choose another run_dir or use --resume");
  }
  TEMPER_TRY(AppendFile file, AppendFile::open(path));
  EventLog log(std::move(file));
  log.writing_ = writing;
  return log;
}

Result<EventLog> EventLog::reopen(const std::filesystem::path& path) {
  TEMPER_TRY(const LogSummary summary,
             read_event_log(path, [](const Record&) { return Status(); }));
  TEMPER_TRY(AppendFile file, AppendFile::open(path, summary.whole_bytes));
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
  buffer_.append(kHeader, '\0');
  encode_to(buffer_, record);
  const std::string_view payload = std::string_view(buffer_).substr(begin + kHeader);
  const auto length = static_cast<std::uint32_t>(payload.size());
  const auto check = static_cast<std::uint32_t>(hash64(payload));
  const std::uint64_t hash = hash64(payload, hash_);
  std::memcpy(buffer_.data() + begin, &length, sizeof length);
  std::memcpy(buffer_.data() + begin + 4, &check, sizeof check);
  if (writing_ == Writing::Through || buffer_.size() >= kGather)
    TEMPER_TRY_STATUS(flush());
  hash_ = hash;
  return {};
}

Status EventLog::flush() {
  const Status status = buffer_.empty() ? Status() : file_->append(buffer_);
  buffer_.clear();
  return status;
}

Status EventLog::sync() {
  TEMPER_TRY_STATUS(flush());
  return file_ ? file_->sync() : Status();
}

Result<LogSummary> read_event_log(const std::filesystem::path& path,
                                  const std::function<Status(const Record&)>& visit) {
  TEMPER_TRY(const std::string content, read_file(path));
  LogSummary summary;
  std::string_view rest = content;
  while (!rest.empty()) {
    const std::string_view payload = front_payload(rest);
    if (payload.empty()) {
      summary.torn_tail = true;
      break;
    }
    const auto where = fmt::format(
        "{}: record {} at byte {}", path.string(), summary.records, content.size() - rest.size());
    auto record = decode<Record>(payload);
    if (!record)
      return std::move(record).error().within(where);
    if (record->sequence != summary.records) {
      return corrupt(fmt::format("{}: carries number {}", where, record->sequence));
    }
    if (auto status = visit(*record); !status)
      return std::move(status).error().within(where);
    summary.hash = hash64(payload, summary.hash);
    summary.last_time = record->time;
    ++summary.records;
    rest.remove_prefix(kHeader + payload.size());
    summary.whole_bytes = static_cast<std::int64_t>(content.size() - rest.size());
  }
  return summary;
}

}  // namespace temper::orchestrator
