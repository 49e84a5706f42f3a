// Floats that have left the memory of their process for the host's: a memfd that the process holds
// and has not mapped. Where card and host share one memory, this is what leaving the card means.
#pragma once

#include "actors/policy/float_buffer.hpp"
#include "core/file_descriptor.hpp"
#include "core/result.hpp"

namespace temper::actors {

class ParkedFloats {
 public:
  /// A copy; the caller then releases the floats. Errors: no memory, or a system without memfd.
  static Result<ParkedFloats> copy_of(const FloatBuffer& floats);

  /// The same floats, on pages of their own. Error: they cannot be read.
  Result<FloatBuffer> read() const;
  Bytes bytes() const { return Bytes(size_ * static_cast<std::int64_t>(sizeof(float))); }

 private:
  ParkedFloats(FileDescriptor fd, std::int64_t size) : fd_(std::move(fd)), size_(size) {}

  FileDescriptor fd_;
  std::int64_t size_;
};

}  // namespace temper::actors
