// events.log: every event a run's scheduler saw and every command it gave, in order. A file of
// frames (log_frames.hpp); the payload of each is one Record in msgpack. Commands are stored beside
// their event, so that a replay can compare and an auditor need not run the scheduler.
//
// What is wrong with a log is found when it is read, with the byte: a log that is torn at its end
// can go on there; one that is damaged cannot be trusted behind the damage, and is never changed
// without keeping what is cut off.
#pragma once

#include "core/files.hpp"
#include "orchestrator/record/log_frames.hpp"
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

struct LogSummary {
  std::uint64_t records = 0;
  Time last_time{};
  std::uint64_t hash = 0;  ///< Of the last whole record.
  LogEnd end;
  bool torn_tail() const { return end.kind == LogEnd::Kind::Torn; }
  bool damaged() const { return end.kind == LogEnd::Kind::Damaged; }
};

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
  /// Opens an existing log to go on after its last record. Requires: `summary` is of this log as it
  /// is now, which ends whole.
  static Result<EventLog> reopen(const std::filesystem::path& path, const LogSummary& summary);

  /// Encodes and appends.
  /// Requires: record.sequence == next_sequence().
  Status append(const Record& record);
  Status flush();
  Status sync();
  /// Error: the file was removed, and what is written to it is lost.
  Status check_named() const;

  std::uint64_t next_sequence() const { return next_sequence_; }
  Time last_time() const { return last_time_; }
  /// Chained hash of all payloads so far: equal logs, equal hash.
  std::uint64_t hash() const { return hash_; }
  /// After the last record. Requires: the log is written, and flushed.
  LogPosition position() const { return {file_->size(), hash_}; }

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

/// Is told a record and where it ends.
using LogVisitor = std::function<Status(const Record&, const LogPosition&)>;

/// Calls `visit` for every whole record in order until it returns an error, and says how the log
/// ends: a record whose bytes are whole but whose number or time cannot be counts as damage. Error:
/// the file cannot be read, or `visit` failed (at which record).
Result<LogSummary> scan_event_log(const std::filesystem::path& path, const LogVisitor& visit);
/// The same, for those who need all of it: a damaged log is an error, after its whole part was
/// visited. A torn one is not.
Result<LogSummary> read_event_log(const std::filesystem::path& path,
                                  const std::function<Status(const Record&)>& visit);
/// "PATH: damaged at ...; what to do"
Error damage_error(const std::filesystem::path& path, const LogSummary& summary);

/// Takes off what follows the whole part of the log and keeps it in a file of its own, beside the
/// log: `events.log.cut-1`, -2, ... The result is that file; none: nothing follows.
Result<std::optional<std::filesystem::path>> cut_event_log(const std::filesystem::path& path,
                                                           const LogSummary& summary);

}  // namespace temper::orchestrator
