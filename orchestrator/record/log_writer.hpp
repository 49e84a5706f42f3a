// Writes a log: packs each record, seals it as a frame, and begins the next file where one is full.
#pragma once

#include "core/deflate.hpp"
#include "core/files.hpp"
#include "orchestrator/record/log_files.hpp"

namespace temper::orchestrator {

struct LogWriting {
  /// Through: a record has reached the kernel when append() returns. Gathered: once there are
  /// kGather bytes, or at flush(); for runs that are sooner repeated than resumed.
  enum class When { Through, Gathered };
  When when = When::Through;
  std::int64_t file_bytes = kLogFileBytes;  ///< A file that has so many is complete.
};

/// After an error nothing more is written, and every call returns that error: behind a record that
/// is missing any other would be damage.
class LogWriter {
 public:
  static constexpr std::size_t kGather = std::size_t{1} << 18;

  /// Error: there is such a log.
  static Result<LogWriter> create(const std::filesystem::path& log, const LogWriting& writing);
  /// How a log ends that goes on.
  struct End {
    std::size_t file = 1;    ///< The n of its last file.
    std::int64_t bytes = 0;  ///< Of that file, all whole.
    LogPosition position;
  };
  /// Error: the log does not end there, or no longer.
  static Result<LogWriter> reopen(const std::filesystem::path& log,
                                  const LogWriting& writing,
                                  const End& end);

  /// Requires: the record is not empty.
  Status append(std::string_view record);
  Status flush();
  Status sync();
  /// Error: the file was removed, and what is written to it is lost.
  Status check_named() const { return file_.check_named(); }
  /// After the last record that was appended.
  const LogPosition& position() const { return position_; }

 private:
  LogWriter(std::filesystem::path log, const LogWriting& writing, AppendFile file)
      : log_(std::move(log)), writing_(writing), file_(std::move(file)) {}
  Status add(std::string_view record);
  Status write_gathered();
  Status begin_file();
  /// Appends a frame that names this program, and `before` it.
  Status name_program(std::string before);
  Status next_file();

  Status state_;  ///< The first error, for ever.
  std::filesystem::path log_;
  LogWriting writing_;
  AppendFile file_;
  std::size_t n_ = 1;   ///< Of file_.
  std::string buffer_;  ///< Frames that are still to be written.
  LogPosition position_;
  LogPosition written_;  ///< The part of it that has reached the file.
  Packer packer_;
  bool begins_ = true;  ///< The next frame is packed without what came before.
};

}  // namespace temper::orchestrator
