// All files of a log as one sequence of records, unpacked. In memory: one record, a piece of a
// file, and the window of the packing.
#pragma once

#include "core/deflate.hpp"
#include "orchestrator/record/log_frames.hpp"
#include "orchestrator/record/log_origin.hpp"

namespace temper::orchestrator {

class LogReader {
 public:
  /// A record cannot be longer, unpacked.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  /// The files are those that are there now. Error: there is no first one, or it cannot be read.
  static Result<LogReader> open(const std::filesystem::path& log);

  /// The bytes of the next record, there until the next call. None: end() says why. Error: a file
  /// cannot be read, or is of another format.
  Result<std::optional<std::string_view>> next();
  /// After the record that next() returned.
  const LogPosition& position() const { return reader_.position(); }
  /// Where that record begins.
  LogPlace place() const { return {log_file(log_, file_), reader_.frame_byte()}; }
  /// The program that wrote that record. Its `program` is empty before the first frame.
  const LogOrigin& origin() const { return origin_; }
  /// Requires: next() has returned none.
  const LogEnd& end() const { return end_; }
  /// Ends the reading here: the record that next() returned cannot be.
  Status stop(const std::string& what);

 private:
  LogReader(std::filesystem::path log, std::size_t files, FrameReader reader)
      : log_(std::move(log)), files_(files), reader_(std::move(reader)) {}
  /// True: the next file is open. False: the log has ended, here.
  Result<bool> go_on();
  Status end_here();
  Result<std::optional<LogPlace>> find_in_later_files() const;

  std::filesystem::path log_;
  std::size_t files_ = 0;
  std::size_t file_ = 1;  ///< The one that is read.
  FrameReader reader_;
  Unpacker unpacker_;
  LogOrigin origin_;
  std::string record_;
  bool ended_ = false;
  LogEnd end_;
};

}  // namespace temper::orchestrator
