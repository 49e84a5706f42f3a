// Weights shared between processes of one machine. The writer keeps an image in a sealed memfd;
// readers map it read-only through /proc. The memory has no name and disappears with its last
// holder, however that ends. A sealed image cannot shrink or change.
#pragma once

#include "actors/protocol/weights.hpp"
#include "core/file_descriptor.hpp"
#include "core/hash.hpp"
#include "core/result.hpp"

#include <span>

namespace temper::actors {

/// The writer's ownership of one published image. Readers that have mapped it keep it alive
/// themselves.
class SharedBuffer {
 public:
  /// Takes an image in parts.
  class Writer {
   public:
    /// Error Io: a system without memfd.
    static Result<Writer> create(PolicyVersion version);
    /// Copies the next part. Error Io: no memory.
    Status append(std::span<const std::byte> part);
    /// No part may follow. Error: Io.
    Result<SharedBuffer> finish() &&;

   private:
    Writer(PolicyVersion version, FileDescriptor fd) : version_(version), fd_(std::move(fd)) {}
    PolicyVersion version_;
    FileDescriptor fd_;
    Bytes bytes_{0};
    Hasher64 hash_;
  };
  /// Copies `image` once. Error Io: no memory, or a system without memfd.
  static Result<SharedBuffer> create(PolicyVersion version, std::span<const std::byte> image);

  /// The handle for readers; valid as long as this buffer lives.
  const WeightsHandle& handle() const { return handle_; }

 private:
  SharedBuffer(FileDescriptor fd, WeightsHandle handle)
      : fd_(std::move(fd)), handle_(std::move(handle)) {}
  FileDescriptor fd_;
  WeightsHandle handle_;
};

/// A reader's mapping of an image.
class MappedBuffer {
 public:
  /// Maps and verifies an image: a memfd, or a file that nobody changes while it is mapped. Errors:
  /// Unavailable if the writer ended or released it; Corrupt if it does not match the handle; Io.
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
