// The exit codes of all commands (docs/reference/exit-codes.md).
#pragma once

#include "core/result.hpp"

#include <iosfwd>
#include <string_view>

namespace temper::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;    ///< The command started, then failed.
inline constexpr int kBadInput = 2;  ///< Invalid input; nothing was changed.
inline constexpr int kFound = 3;     ///< A check found a problem.
inline constexpr int kLost = 4;      ///< fsck: the run cannot be resumed.
inline constexpr int kStopped = 130;

/// Prints the error on stderr and returns its exit code. A full or closed stderr is ignored.
int fail(const Error& error);

/// Prints "WHERE: error" to `err` and returns the exit code of the error.
int fail(const Error& error, std::ostream& err, std::string_view where = "temper");

}  // namespace temper::cli
