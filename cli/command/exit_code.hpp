// What the exit codes of all commands mean (docs/exit_codes.md).
#pragma once

#include "core/result.hpp"

namespace temper::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;    ///< What was asked for was begun and failed.
inline constexpr int kBadInput = 2;  ///< It cannot be what was meant; nothing was done.
inline constexpr int kFound = 3;     ///< A check found something that is not as it should be.
inline constexpr int kLost = 4;      ///< fsck: and the run cannot go on as it is.
inline constexpr int kStopped = 130;

int exit_code_of(const Error& error);

/// Says the error on stderr, which may be full or closed. Returns its exit code.
int fail(const Error& error);

}  // namespace temper::cli
