// Floats offloaded to host memory: a memfd that the process holds but has not mapped. On a machine
// where device and host share one memory, this stands for leaving the device.
#pragma once

#include "actors/policy/float_buffer.hpp"
#include "core/file_descriptor.hpp"
#include "core/result.hpp"

namespace temper::actors {

class ParkedFloats {
 public:
  /// Holds the floats, which the caller then releases. Copies them, unless map() returned them.
  /// Error Io: no memory, or a system without memfd.
  static Result<ParkedFloats> park(const FloatBuffer& floats);

  /// Maps the same floats into the process. Error: Io.
  Result<FloatBuffer> map() const;
  Bytes bytes() const { return Bytes(size_ * static_cast<std::int64_t>(sizeof(float))); }

 private:
  ParkedFloats(FileDescriptor fd, std::int64_t size) : fd_(std::move(fd)), size_(size) {}

  FileDescriptor fd_;
  std::int64_t size_;
};

}  // namespace temper::actors
