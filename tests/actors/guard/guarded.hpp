// Helpers that read the output of a guarded process and wait for its end.
#pragma once

#include "actors/guard/guarded_process.hpp"

#include <poll.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace temper::actors {

inline constexpr int kPatienceMs = 10000;  // Never reached unless the test fails.

/// Reads until end of file, or until the text ends with `until`.
inline std::string read_until(int fd, std::string_view until = {}) {
  std::string text;
  for (;;) {
    pollfd p{fd, POLLIN, 0};
    if (::poll(&p, 1, kPatienceMs) <= 0)
      return text + "<nothing more came>";
    char chunk[4096];
    const ssize_t size = ::read(fd, chunk, sizeof(chunk));
    if (size <= 0)
      return text;
    text.append(chunk, static_cast<std::size_t>(size));
    if (!until.empty() && text.ends_with(until))
      return text;
  }
}

/// True once all other ends of the descriptor are closed, so all processes that held them have
/// ended.
inline bool is_end_of_file(int fd) {
  return read_until(fd).empty();
}

inline bool wait_until_gone(GuardedProcess& process) {
  pollfd p{process.ended(), POLLIN, 0};
  while (!process.is_gone()) {
    if (::poll(&p, 1, kPatienceMs) <= 0)
      return false;
  }
  return true;
}

}  // namespace temper::actors
