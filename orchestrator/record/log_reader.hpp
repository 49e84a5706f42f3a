// Reads all files of a log as one sequence of unpacked records. Memory: one record, a piece of a
// file, and the window of the decompressor.
#pragma once

#include "core/deflate.hpp"
#include "orchestrator/record/log_frames.hpp"
#include "orchestrator/record/log_origin.hpp"

namespace temper::orchestrator {

class LogReader {
 public:
  /// Largest size of an unpacked record.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  /// Reads the files that exist now. Error: the first file does not exist or cannot be read.
  static Result<LogReader> open(const std::filesystem::path& log);

  /// The bytes of the next record, valid until the next call. None: see end(). Error: a file cannot
  /// be read, or has another format.
  Result<std::optional<std::string_view>> next();
  /// Position behind the record that next() returned.
  const LogPosition& position() const { return reader_.position(); }
  /// Position at which that record begins.
  LogPlace place() const { return {log_file(log_, file_), reader_.frame_byte()}; }
  /// The program that wrote that record. Its `program` is empty before the first frame.
  const LogOrigin& origin() const { return origin_; }
  /// Requires: next() returned none.
  const LogEnd& end() const { return end_; }
  /// Ends reading here, because the record that next() returned is impossible. end() is then
  /// Damaged and contains `what`. Error: a file cannot be read.
  Status stop(const std::string& what);

 private:
  LogReader(std::filesystem::path log, std::size_t files, FrameReader reader)
      : log_(std::move(log)), files_(files), reader_(std::move(reader)) {}
  /// True: the next file is open. False: the log ends here.
  Result<bool> go_on();
  Status end_here();
  Result<std::optional<LogPlace>> find_in_later_files() const;

  std::filesystem::path log_;
  std::size_t files_ = 0;
  std::size_t file_ = 1;  ///< Number of the current file.
  FrameReader reader_;
  Unpacker unpacker_;
  LogOrigin origin_;
  std::string record_;
  bool ended_ = false;
  LogEnd end_;
};

}  // namespace temper::orchestrator
