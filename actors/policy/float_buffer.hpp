// A zeroed array of floats on separate pages. Releasing it returns the memory to the system at
// once, which stands for freeing device memory here.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace temper::actors {

class FloatBuffer {
 public:
  FloatBuffer() = default;
  /// Aborts if no address space is left.
  explicit FloatBuffer(std::int64_t floats);
  /// Maps the floats of a file in memory and keeps the file open. Error Io: no address space.
  static Result<FloatBuffer> map(FileDescriptor file, std::int64_t floats);
  FloatBuffer(FloatBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        file_(std::move(other.file_)) {}
  FloatBuffer& operator=(FloatBuffer&& other) noexcept;
  ~FloatBuffer() { release(); }

  /// A copy, in memory of its own.
  FloatBuffer clone() const;
  /// Multiplies every float.
  void scale(float factor);
  void fill(float value);
  bool all_finite() const;
  /// Empties the buffer. The floats of a mapped file stay in it.
  void release();

  bool empty() const { return size_ == 0; }
  std::int64_t size() const { return size_; }
  /// Null if empty. Owned by this buffer, and valid until release(), assignment or the end of its
  /// life. A buffer that it is moved into takes over the same memory.
  float* data() { return data_; }
  const float* data() const { return data_; }
  std::span<float> span() { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const float> span() const { return {data_, static_cast<std::size_t>(size_)}; }
  Bytes bytes() const { return Bytes(size_ * static_cast<std::int64_t>(sizeof(float))); }

  /// The file that holds the floats, if they were mapped.
  const FileDescriptor& file() const { return file_; }

 private:
  float* data_ = nullptr;
  std::int64_t size_ = 0;
  FileDescriptor file_;
};

}  // namespace temper::actors
