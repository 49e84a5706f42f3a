// Owns one file descriptor (file, pipe, socket, shared memory) and closes it.
#pragma once

#include <unistd.h>

#include <utility>

namespace temper {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes ownership of `fd`; a negative value (a failed call) means none.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0)
      ::close(std::exchange(fd_, -1));
  }
  /// The caller becomes responsible for closing it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace temper
