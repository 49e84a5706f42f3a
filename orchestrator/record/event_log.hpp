// events.log: every event a run's scheduler saw and every command it gave, in order.
//
// A file is a sequence of frames
//   u32 length | u32 check | payload     (little endian; check: low half of the payload's XXH3-64)
// and a payload is one Record in msgpack. A frame that is cut short or fails its check ends the
// log: what follows was being written when the process ended. Commands are stored beside their
// event, so that a replay can compare and an auditor need not run the scheduler.
#pragma once

#include "core/files.hpp"
#include "orchestrator/scheduler/commands.hpp"
#include "orchestrator/scheduler/events.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct Record {
  std::uint64_t sequence = 0;  ///< From 0, without gaps.
  Time time{};
  Event event;
  Commands commands;
};

template <class V>
void describe(V& v, Record& r) {
  v.field(1, "sequence", r.sequence, {.doc = "Position in the log."});
  v.field(2, "time", r.time, {.doc = "When the event was delivered, on the run's clock."});
  v.field(3, "event", r.event, {.doc = "What happened."});
  v.field(4, "commands", r.commands, {.doc = "What the scheduler asked for."});
}

class EventLog {
 public:
  /// Through: a record has reached the kernel when append() returns. Gathered: once there are
  /// kGather bytes, or at flush(); for runs that are sooner repeated than resumed.
  enum class Writing { Through, Gathered };
  static constexpr std::size_t kGather = std::size_t{1} << 18;

  /// Starts an empty log. Error: the file exists.
  static Result<EventLog> create(const std::filesystem::path& path,
                                 Writing writing = Writing::Through);
  /// A log that is nowhere: records are counted, nothing is encoded or written, the hash stays 0.
  /// For runs that only their observer sees.
  static EventLog unwritten() { return EventLog(std::nullopt); }
  /// Opens an existing log to go on after its last whole record; a torn tail is cut off.
  static Result<EventLog> reopen(const std::filesystem::path& path);

  /// Encodes and appends.
  /// Requires: record.sequence == next_sequence().
  Status append(const Record& record);
  Status flush();
  Status sync();

  std::uint64_t next_sequence() const { return next_sequence_; }
  Time last_time() const { return last_time_; }
  /// Chained hash of all payloads so far: equal logs, equal hash.
  std::uint64_t hash() const { return hash_; }

 private:
  Status write(const Record& record);

  explicit EventLog(std::optional<AppendFile> file) : file_(std::move(file)) {}
  std::optional<AppendFile> file_;  ///< None: unwritten.
  Writing writing_ = Writing::Through;
  std::string buffer_;  ///< Frames that are still to be written.
  std::uint64_t next_sequence_ = 0;
  Time last_time_{};
  std::uint64_t hash_ = 0;
};

struct LogSummary {
  std::uint64_t records = 0;
  std::int64_t whole_bytes = 0;  ///< Length of the part that holds whole records.
  bool torn_tail = false;
  Time last_time{};
  std::uint64_t hash = 0;
};

/// Calls `visit` for every whole record in order until it returns an error. Errors: the file cannot
/// be read, or a record is whole but wrong (named by its number and offset).
Result<LogSummary> read_event_log(const std::filesystem::path& path,
                                  const std::function<Status(const Record&)>& visit);

}  // namespace temper::orchestrator
