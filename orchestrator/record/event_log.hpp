// events.log: every event that the scheduler received and every command it gave, in order; in one
// or several files (log_files.hpp), as frames (log_frames.hpp). The payload of a frame is one
// Record in msgpack, packed (log_writer.hpp). Each event is stored with its commands, so that a
// replay can compare them and the auditor need not run the scheduler.
//
// Errors in a log are found when it is read, and name file and byte. A log that is torn at its end
// can be continued. A damaged log cannot be trusted behind the damage; it is never changed without
// keeping what is cut off.
#pragma once

#include "orchestrator/record/log_frames.hpp"
#include "orchestrator/record/log_writer.hpp"
#include "orchestrator/scheduler/state/commands.hpp"
#include "orchestrator/scheduler/state/events.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Number of latest checkpoints to which a run can roll back, in addition to its start. Readers of
/// the log keep their state at each of them.
inline constexpr std::size_t kMostWaysBack = 16;

struct Record {
  std::uint64_t sequence = 0;  ///< Consecutive, from 0.
  Time time{};
  Event event;
  Commands commands;
};

void describe(auto& v, Record& r) {
  v.field(1, "sequence", r.sequence, {.doc = "Position in the log."});
  v.field(2, "time", r.time, {.doc = "Time of delivery of the event, on the clock of the run."});
  v.field(3, "event", r.event, {.doc = "The event."});
  v.field(4, "commands", r.commands, {.doc = "The commands of the scheduler."});
}

struct LogSummary {
  std::uint64_t records = 0;
  Time last_time{};
  /// Chained hash of the records, independent of how they are packed.
  std::uint64_t hash = 0;
  /// The programs that wrote the log, in order of their first record.
  std::vector<std::string> written_by;
  LogPosition position;  ///< End of the last whole record.
  LogEnd end;
  bool torn_tail() const { return end.kind == LogEnd::Kind::Torn; }
  bool damaged() const { return end.kind == LogEnd::Kind::Damaged; }
};

class EventLog {
 public:
  /// Creates an empty log. Error: the log exists.
  static Result<EventLog> create(const std::filesystem::path& path, const LogWriting& writing = {});
  /// A log without a file: records are counted, but not encoded or written, and the hash stays 0.
  /// For runs whose only reader is an observer.
  static EventLog unwritten() { return EventLog(std::nullopt); }
  /// Opens an existing log to append to it. Requires: `summary` describes the current log, which is
  /// whole to its end.
  static Result<EventLog> reopen(const std::filesystem::path& path,
                                 const LogSummary& summary,
                                 const LogWriting& writing = {});

  /// Encodes and appends. Requires: record.sequence == next_sequence(). Error: cannot write.
  Status append(const Record& record);
  Status flush();
  Status sync();
  /// Error: the file was deleted, so that anything written to it is lost.
  Status check_named() const;

  std::uint64_t next_sequence() const { return next_sequence_; }
  Time last_time() const { return last_time_; }
  /// Chained hash of all records so far: equal for equal logs.
  std::uint64_t hash() const { return hash_; }
  /// End of the last record. Requires: the log has a file, and was flushed.
  LogPosition position() const { return writer_->position(); }

 private:
  explicit EventLog(std::optional<LogWriter> writer) : writer_(std::move(writer)) {}
  std::optional<LogWriter> writer_;  ///< None: no file.
  std::string encoded_;              ///< Buffer of the last record.
  std::uint64_t next_sequence_ = 0;
  Time last_time_{};
  std::uint64_t hash_ = 0;
};

/// Receives a record and the position of its end.
using LogVisitor = std::function<Status(const Record&, const LogPosition&)>;

/// Calls `visit` for every whole record in order until it returns an error. Reports how the log
/// ends; a record with intact bytes but an impossible sequence number or time counts as damage.
/// Error: the file cannot be read, or `visit` failed; names the record, and the program that wrote
/// it if it was another version.
Result<LogSummary> scan_event_log(const std::filesystem::path& path, const LogVisitor& visit);
/// As scan_event_log(), but a damaged log is an error, after its whole part was visited. A torn end
/// is not an error.
Result<LogSummary> read_event_log(const std::filesystem::path& path,
                                  const std::function<Status(const Record&)>& visit);
/// "PATH: damaged at ...; next step".
Error damage_error(const std::filesystem::path& path, const LogSummary& summary);

/// Removes what follows the whole part of the log, and keeps it beside the log: the rest of the
/// file in which the whole part ends as `events.log.cut-1`, -2, ..., and each later file under its
/// own name with `.cut-1`, -2, ... Returns those files in order; empty if nothing followed.
Result<std::vector<std::filesystem::path>> cut_event_log(const std::filesystem::path& path,
                                                         const LogSummary& summary);

}  // namespace temper::orchestrator
