// The files of a log: events.log and, as it grows, events.log.2, events.log.3, ... A new file
// starts when the current one reaches kLogFileBytes; all but the last are complete and durable.
// Each begins with a header (little endian),
//
//   "temperL4" | u64 begin | u64 chain | u64 check
//
//   4       log format: the meaning of records, and how they are packed. It changes when the
//           scheduler would give other commands than those in a log of the previous format
//   begin   bytes of all previous files
//   chain   chain of the last frame before this file (log_frames.hpp); ties the files together
//   check   XXH3-64 of the three fields before it
//
// followed by a frame that names the program that wrote it (log_origin.hpp).
// Positions in a log count bytes from the beginning of the first file.
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

/// A position in a log: its number of bytes, and the chain of the frame that ends there.
struct LogPosition {
  std::int64_t bytes = 0;
  std::uint64_t chain = 0;
  bool operator==(const LogPosition&) const = default;
};

/// The header of the file that begins at this position.
std::string log_header(const LogPosition& begin);

/// Path of the n-th file, from 1: `log`, then `log`.2, `log`.3, ...
std::filesystem::path log_file(const std::filesystem::path& log, std::size_t n);
/// Number of the last existing file; 0: none. Earlier files may be missing. Error: the folder
/// cannot be read.
Result<std::size_t> count_log_files(const std::filesystem::path& log);

/// Why a file with these first bytes is not a log of this format; empty if the format is unknown,
/// or is ours.
std::string other_format(std::string_view file);

}  // namespace temper::orchestrator
