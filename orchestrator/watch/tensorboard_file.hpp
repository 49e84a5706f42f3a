// Event files for TensorBoard: tensorboard/events.out.tfevents.<time>.<host>, one scalar per metric
// and step.
//
// Format (TFRecord of protobuf Event messages, written by hand):
//   record = u64 length | u32 masked crc32c(length) | data | u32 masked crc32c(data), little endian
//   masked(c) = ((c >> 15) | (c << 17)) + 0xa282ead8
//   Event      = 1 double wall_time, 2 int64 step, 3 string file_version, 5 Summary, 7 SessionLog
//   Summary    = 1 repeated Value; Value = 1 string tag, 2 float simple_value
//   SessionLog = 1 enum status; 1: START
//
// After a rollback or a resume, steps repeat. The first of them is preceded by a START, at which
// TensorBoard drops that step and later ones.
#pragma once

#include "core/files.hpp"
#include "orchestrator/watch/flat_metrics.hpp"

#include <filesystem>
#include <optional>

namespace temper::orchestrator {

inline constexpr std::string_view kTensorboardFolder = "tensorboard";

class TensorboardFile {
 public:
  /// Creates a file in tensorboard.partial/: a resumed run writes all its lines again. `unix_time`:
  /// start time of the file, in seconds; part of its name, so that a TensorBoard that reads the
  /// previous file continues with this one. Errors: Io; those of AppendFile::open().
  static Result<TensorboardFile> create(const std::filesystem::path& run_dir, double unix_time);

  /// Replaces tensorboard/ by it. Errors: see put_folder_in_place().
  Status put_in_place();
  /// `unix_time`: seconds. Values that are not finite are left out. Error: Io.
  Status add(double unix_time, std::uint64_t step, const FlatMetrics& metrics);

 private:
  TensorboardFile(std::filesystem::path folder, AppendFile file)
      : folder_(std::move(folder)), file_(std::move(file)) {}
  std::filesystem::path folder_;  ///< tensorboard/
  AppendFile file_;
  std::optional<std::uint64_t> step_;  ///< The last step, if any.
};

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view data);
/// Frames a record of a TFRecord file.
std::string tensorboard_record(std::string_view data);

}  // namespace temper::orchestrator
