// Writes a log: packs each record, frames it, and starts a new file when one is full.
#pragma once

#include "core/deflate.hpp"
#include "core/files.hpp"
#include "orchestrator/record/log_files.hpp"

namespace temper::orchestrator {

struct LogWriting {
  /// Through: a record has reached the kernel when append() returns. Gathered: records are written
  /// when kGather bytes are buffered, or by flush(); for runs that are easier to repeat than to
  /// resume.
  enum class When { Through, Gathered };
  When when = When::Through;
  std::int64_t file_bytes = kLogFileBytes;  ///< Size at which the next file starts.
};

/// After an error nothing more is written, and every call returns that error, because a record
/// behind a missing one would be damage.
class LogWriter {
 public:
  static constexpr std::size_t kGather = std::size_t{1} << 18;

  /// Error: the log exists.
  static Result<LogWriter> create(const std::filesystem::path& log, const LogWriting& writing);
  /// End of an existing log that is continued.
  struct End {
    std::size_t file = 1;    ///< Number of its last file.
    std::int64_t bytes = 0;  ///< Size of that file, all whole.
    LogPosition position;
  };
  /// Error: the log does not end there, or no longer does.
  static Result<LogWriter> reopen(const std::filesystem::path& log,
                                  const LogWriting& writing,
                                  const End& end);

  /// Requires: the record is not empty.
  Status append(std::string_view record);
  Status flush();
  Status sync();
  /// Error: the file was deleted, so that anything written to it is lost.
  Status check_named() const { return file_.check_named(); }
  /// End of the last record that was appended.
  const LogPosition& position() const { return position_; }

 private:
  LogWriter(std::filesystem::path log, const LogWriting& writing, AppendFile file)
      : log_(std::move(log)), writing_(writing), file_(std::move(file)) {}
  Status add(std::string_view record);
  Status write_gathered();
  Status begin_file();
  /// Appends a frame that names this program, after writing `before`.
  Status name_program(std::string before);
  Status next_file();

  Status state_;  ///< The first error, kept forever.
  std::filesystem::path log_;
  LogWriting writing_;
  AppendFile file_;
  std::size_t n_ = 1;   ///< Number of file_.
  std::string buffer_;  ///< Frames that are not written yet.
  LogPosition position_;
  LogPosition written_;  ///< End of the part that has reached the file.
  Packer packer_;
  bool begins_ = true;  ///< The next frame is packed without its predecessors.
};

}  // namespace temper::orchestrator
