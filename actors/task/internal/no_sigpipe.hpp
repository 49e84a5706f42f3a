// Writing to the pipe of a program that may have ended.
#pragma once

#include <csignal>
#include <ctime>

namespace temper::actors {

/// For its lifetime, writing to a closed pipe is an error in this thread instead of a signal.
class NoSigpipe {
 public:
  NoSigpipe() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    was_pending_ = is_pending();
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec no_time{};
    if (!was_pending_ && is_pending())
      ::sigtimedwait(&sigpipe_, nullptr, &no_time);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
  }
  sigset_t sigpipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace temper::actors
