// A file of weights in the safetensors format, of which the header and one tensor at a time are in
// memory. It is read rather than mapped, because a mapped file that is truncated meanwhile raises
// SIGBUS.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace temper::actors {

class WeightsFile {
 public:
  /// Reads the header; of another kind of file, its first bytes. Errors name the file.
  static Result<WeightsFile> open(const std::filesystem::path& path);
  WeightsFile(WeightsFile&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::move(other.fd_)),
        bytes_(std::exchange(other.bytes_, {})) {}
  WeightsFile& operator=(WeightsFile&&) = delete;
  ~WeightsFile();

  /// As long as the file, and zero where nothing was read. Owned by this object.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Reads the data of a tensor into its place. Requires: it is a part of bytes().
  Status read(std::span<const std::byte> tensor);
  /// Frees the pages that have the data of a tensor. They may also have the end of the tensor
  /// before it, or of the header, and the beginning of the next one, which must be read after this.
  void drop(std::span<const std::byte> tensor);

 private:
  WeightsFile(std::filesystem::path path, FileDescriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}
  std::size_t offset_of(std::span<const std::byte> part) const {
    return static_cast<std::size_t>(part.data() - bytes_.data());
  }
  Status fill(std::size_t begin, std::size_t size);

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::span<std::byte> bytes_;
};

}  // namespace temper::actors
