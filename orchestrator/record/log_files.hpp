// The files of a log: events.log, and where that has become long, events.log.2, events.log.3, ...
// The next one begins when one has kLogFileBytes; all but the last are complete and on the disk.
// Each begins with a header (little endian),
//
//   "temperL4" | u64 begin | u64 chain | u64 check
//
//   4       the log format: what records mean, and how they are packed. It changes when a scheduler
//           of this program would command something else than a log of the format before has
//   begin   bytes of all files before it
//   chain   of the last frame before it (log_frames.hpp), so that files belong together
//   check   XXH3-64 of the three before it
//
// and a frame that names the program that wrote it (log_origin.hpp).
// A place in the log counts its bytes from the beginning of the first file.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace temper::orchestrator {

inline constexpr std::string_view kLogTitle = "temperL4";
inline constexpr std::uint32_t kLogFormat = 4;  ///< The digit in the title.
inline constexpr std::size_t kLogHeader = 32;
inline constexpr std::int64_t kLogFileBytes = std::int64_t{64} << 20;

/// Where in a log: how many bytes, and the chain of the frame that ends there.
struct LogPosition {
  std::int64_t bytes = 0;
  std::uint64_t chain = 0;
  bool operator==(const LogPosition&) const = default;
};

/// Of the file that begins there.
std::string log_header(const LogPosition& begin);

/// The n-th file, from 1 on: `log` itself, then `log`.2, `log`.3, ...
std::filesystem::path log_file(const std::filesystem::path& log, std::size_t n);
/// The n of the last file that is there; 0: there is none. One before it may be missing. Error: the
/// folder cannot be read, so that nobody knows.
Result<std::size_t> count_log_files(const std::filesystem::path& log);

/// Why these first bytes of a file are no log of this version; empty: they are of none that is
/// known, or begin as ours do.
std::string other_format(std::string_view file);

}  // namespace temper::orchestrator
