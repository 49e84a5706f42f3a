#include "actors/policy/float_buffer.hpp"

#include "core/check.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace temper::actors {

FloatBuffer::FloatBuffer(std::int64_t floats) : size_(floats) {
  if (floats == 0)
    return;
  void* memory = ::mmap(nullptr,
                        static_cast<std::size_t>(bytes().count()),
                        PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS,
                        -1,
                        0);
  TEMPER_CHECK(memory != MAP_FAILED, "no address space left for a float buffer");
  data_ = static_cast<float*>(memory);
}

FloatBuffer& FloatBuffer::operator=(FloatBuffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

FloatBuffer FloatBuffer::clone() const {
  FloatBuffer copy(size_);
  std::copy_n(data_, size_, copy.data_);
  return copy;
}

void FloatBuffer::release() {
  if (data_ != nullptr)
    ::munmap(data_, static_cast<std::size_t>(bytes().count()));
  data_ = nullptr;
  size_ = 0;
}

}  // namespace temper::actors
