// A zeroed array of floats on separate pages. Releasing it returns the memory to the system at
// once, which stands for freeing device memory here.
#pragma once

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
  FloatBuffer(FloatBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  FloatBuffer& operator=(FloatBuffer&& other) noexcept;
  ~FloatBuffer() { release(); }

  /// An explicit copy.
  FloatBuffer clone() const;
  void release();

  bool empty() const { return size_ == 0; }
  std::int64_t size() const { return size_; }
  float* data() { return data_; }
  const float* data() const { return data_; }
  std::span<float> span() { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const float> span() const { return {data_, static_cast<std::size_t>(size_)}; }
  Bytes bytes() const { return Bytes(size_ * static_cast<std::int64_t>(sizeof(float))); }

 private:
  float* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace temper::actors
