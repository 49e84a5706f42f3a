// Weights between processes of one machine: the writer keeps an image in a sealed memfd, readers
// map it read-only through /proc. The memory has no name anywhere: it is gone when the last holder
// is, however that one ends. A sealed image can neither shrink nor change under a reader.
#pragma once

#include "actors/protocol/weights.hpp"
#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <span>

namespace temper::actors {

/// The writer's hold on one published image. Readers that have mapped it keep it on their own.
class SharedBuffer {
 public:
  /// Copies `image` once. Errors: no memory, or a system without memfd.
  static Result<SharedBuffer> create(PolicyVersion version, std::span<const std::byte> image);

  /// What a reader needs; valid as long as this buffer lives.
  const WeightsHandle& handle() const { return handle_; }

 private:
  SharedBuffer(FileDescriptor fd, WeightsHandle handle)
      : fd_(std::move(fd)), handle_(std::move(handle)) {}
  FileDescriptor fd_;
  WeightsHandle handle_;
};

/// A reader's mapping.
class MappedBuffer {
 public:
  /// Maps and verifies an image: of a memfd, or a file that is not changed while it is mapped.
  /// Errors: Unavailable, its writer is gone or has released it; Corrupt, it is not what the handle
  /// says.
  static Result<MappedBuffer> open(const WeightsHandle& handle);
  MappedBuffer(MappedBuffer&& other) noexcept;
  MappedBuffer& operator=(MappedBuffer&& other) noexcept;
  ~MappedBuffer();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedBuffer(std::span<const std::byte> bytes) : bytes_(bytes) {}
  static Result<MappedBuffer> map(int fd, const WeightsHandle& handle);
  std::span<const std::byte> bytes_;
};

}  // namespace temper::actors
