#include "actors/policy/float_buffer.hpp"

#include "actors/policy/internal/parallel.hpp"
#include "core/check.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

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
  // In pages of 2 MB, where the system has them: fewer page faults. Advice only, so a refusal
  // changes nothing else.
  static_cast<void>(::madvise(memory, static_cast<std::size_t>(bytes().count()), MADV_HUGEPAGE));
  data_ = static_cast<float*>(memory);
}

Result<FloatBuffer> FloatBuffer::map(FileDescriptor file, std::int64_t floats) {
  FloatBuffer buffer;
  if (floats == 0)
    return buffer;
  buffer.size_ = floats;
  void* memory = ::mmap(nullptr,
                        static_cast<std::size_t>(buffer.bytes().count()),
                        PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE,
                        file.get(),
                        0);
  if (memory == MAP_FAILED) {
    buffer.size_ = 0;
    return io_error("cannot map host memory", errno);
  }
  buffer.data_ = static_cast<float*>(memory);
  buffer.file_ = std::move(file);
  return buffer;
}

FloatBuffer& FloatBuffer::operator=(FloatBuffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    file_ = std::move(other.file_);
  }
  return *this;
}

FloatBuffer FloatBuffer::clone() const {
  FloatBuffer copy(size_);
  std::copy_n(data_, size_, copy.data_);
  return copy;
}

void FloatBuffer::scale(float factor) {
  for_each_part(size_, [&](std::int64_t begin, std::int64_t end) {
    std::for_each(data_ + begin, data_ + end, [&](float& x) { x *= factor; });
  });
}

void FloatBuffer::fill(float value) {
  for_each_part(size_, [&](std::int64_t begin, std::int64_t end) {
    std::fill(data_ + begin, data_ + end, value);
  });
}

bool FloatBuffer::all_finite() const {
  const double others = sum_of_parts(size_, [&](std::int64_t begin, std::int64_t end) {
    const auto is_finite = [](float x) { return std::isfinite(x); };
    return std::all_of(data_ + begin, data_ + end, is_finite) ? 0.0 : 1.0;
  });
  return others == 0;
}

void FloatBuffer::release() {
  if (data_ != nullptr)
    ::munmap(data_, static_cast<std::size_t>(bytes().count()));
  data_ = nullptr;
  size_ = 0;
  file_.reset();
}

}  // namespace temper::actors
