// Zeroed floats on pages of their own: releasing the buffer gives the memory back to the system at
// once, which is what freeing a card's memory means here.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace temper::actors {

class FloatBuffer {
 public:
  FloatBuffer() = default;
  /// Aborts if the system refuses the address space.
  explicit FloatBuffer(std::int64_t floats);
  FloatBuffer(FloatBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  FloatBuffer& operator=(FloatBuffer&& other) noexcept;
  ~FloatBuffer() { release(); }

  /// A copy, made explicitly.
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
