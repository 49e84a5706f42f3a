// Event files for TensorBoard: tensorboard/events.out.tfevents.<time>.<host>, one scalar per metric
// and update.
//
// Format (TFRecord of protobuf Event messages, written by hand):
//   record = u64 length | u32 masked crc32c(length) | data | u32 masked crc32c(data), little endian
//   masked(c) = ((c >> 15) | (c << 17)) + 0xa282ead8
//   Event   = 1 double wall_time, 2 int64 step, 3 string file_version, 5 Summary
//   Summary = 1 repeated Value; Value = 1 string tag, 2 float simple_value
#pragma once

#include "core/files.hpp"
#include "orchestrator/watch/flat_metrics.hpp"

#include <filesystem>

namespace temper::orchestrator {

inline constexpr std::string_view kTensorboardFolder = "tensorboard";

class TensorboardFile {
 public:
  /// Replaces what is in the folder: a resumed run writes all its lines anew. `unix_time`: seconds,
  /// when the file was begun; part of its name.
  static Result<TensorboardFile> create(const std::filesystem::path& run_dir, double unix_time);

  /// `unix_time`: seconds.
  Status add(double unix_time, std::uint64_t step, const FlatMetrics& metrics);

 private:
  explicit TensorboardFile(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
};

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view data);
/// A record of a TFRecord file.
std::string tensorboard_record(std::string_view data);

}  // namespace temper::orchestrator
