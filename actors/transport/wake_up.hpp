// A file descriptor with which one thread wakes another that waits on a socket.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace temper::actors {

/// Readable from notify() until clear(). notify() is thread-safe.
class WakeUp {
 public:
  /// Error: Io if no descriptor is left.
  static Result<WakeUp> create() {
    FileDescriptor fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd.is_open())
      return io_error("cannot create an eventfd", errno);
    return WakeUp(std::move(fd));
  }
  void notify() {
    // Fails only if the counter is full, and then the descriptor is readable already.
    static_cast<void>(::eventfd_write(fd(), 1));
  }
  void clear() {
    eventfd_t count = 0;
    static_cast<void>(::eventfd_read(fd(), &count));
  }
  int fd() const { return fd_.get(); }

 private:
  explicit WakeUp(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace temper::actors
