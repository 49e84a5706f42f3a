// events.log: every event a run's scheduler saw and every command it gave, in order; in one file or
// several (log_files.hpp), in frames (log_frames.hpp). The payload of each is one Record in
// msgpack, packed (log_writer.hpp). Commands are stored beside their event, so that a replay can
// compare and an auditor need not run the scheduler.
//
// What is wrong with a log is found when it is read, with file and byte: a log that is torn at its
// end can go on there; one that is damaged cannot be trusted behind the damage, and is never
// changed without keeping what is cut off.
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

/// A run goes back to one of its latest checkpoints, so many at the most, or to its start; who
/// follows the log keeps what was true at each.
inline constexpr std::size_t kMostWaysBack = 16;

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
  /// Of what the whole records say, however they are packed.
  std::uint64_t hash = 0;
  /// The programs that wrote it, in order; each once, where it began.
  std::vector<std::string> written_by;
  LogPosition position;  ///< Behind the last whole record.
  LogEnd end;
  bool torn_tail() const { return end.kind == LogEnd::Kind::Torn; }
  bool damaged() const { return end.kind == LogEnd::Kind::Damaged; }
};

class EventLog {
 public:
  /// Starts an empty log. Error: there is one.
  static Result<EventLog> create(const std::filesystem::path& path, const LogWriting& writing = {});
  /// A log that is nowhere: records are counted, nothing is encoded or written, the hash stays 0.
  /// For runs that only their observer sees.
  static EventLog unwritten() { return EventLog(std::nullopt); }
  /// Opens an existing log to go on after its last record. Requires: `summary` is of this log as it
  /// is now, which ends whole.
  static Result<EventLog> reopen(const std::filesystem::path& path,
                                 const LogSummary& summary,
                                 const LogWriting& writing = {});

  /// Encodes and appends.
  /// Requires: record.sequence == next_sequence().
  Status append(const Record& record);
  Status flush();
  Status sync();
  /// Error: the file was removed, and what is written to it is lost.
  Status check_named() const;

  std::uint64_t next_sequence() const { return next_sequence_; }
  Time last_time() const { return last_time_; }
  /// Chained hash of all records so far: equal logs, equal hash.
  std::uint64_t hash() const { return hash_; }
  /// After the last record. Requires: the log is written, and flushed.
  LogPosition position() const { return writer_->position(); }

 private:
  explicit EventLog(std::optional<LogWriter> writer) : writer_(std::move(writer)) {}
  std::optional<LogWriter> writer_;  ///< None: unwritten.
  std::string encoded_;              ///< The last record.
  std::uint64_t next_sequence_ = 0;
  Time last_time_{};
  std::uint64_t hash_ = 0;
};

/// Is told a record and where it ends.
using LogVisitor = std::function<Status(const Record&, const LogPosition&)>;

/// Calls `visit` for every whole record in order until it returns an error, and says how the log
/// ends: a record whose bytes are whole but whose number or time cannot be counts as damage. Error:
/// the file cannot be read, or `visit` failed (at which record, and which program wrote it, where
/// it was another one).
Result<LogSummary> scan_event_log(const std::filesystem::path& path, const LogVisitor& visit);
/// The same, for those who need all of it: a damaged log is an error, after its whole part was
/// visited. A torn one is not.
Result<LogSummary> read_event_log(const std::filesystem::path& path,
                                  const std::function<Status(const Record&)>& visit);
/// "PATH: damaged at ...; what to do"
Error damage_error(const std::filesystem::path& path, const LogSummary& summary);

/// Takes off what follows the whole part of the log and keeps it beside the log: the rest of the
/// file in which that ends as `events.log.cut-1`, -2, ..., and each file behind it under its own
/// name with `.cut-1`, -2, ... The result is those files, in order; none: nothing follows.
Result<std::vector<std::filesystem::path>> cut_event_log(const std::filesystem::path& path,
                                                         const LogSummary& summary);

}  // namespace temper::orchestrator
