// Files, with errors that name the path and the system's reason.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace temper {

/// All of a file, or of a pipe up to 64 MiB. Errors: it is a device, a folder or a socket; it does
/// not fit into memory; a git-lfs pointer is in its place.
Result<std::string> read_file(const std::filesystem::path& path);

/// Replaces `path` as a whole or not at all: writes a temporary beside it, syncs, renames, syncs
/// the folder. A failure (a full disk included) leaves the old file as it was and no temporary
/// behind.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Creates the folder and its parents.
Status make_folder(const std::filesystem::path& path);

/// Renames within a folder and syncs it: after a power loss the old name is there or the new one.
Status rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// The first of `path`-1, `path`-2, ... that does not exist.
std::filesystem::path free_name(const std::filesystem::path& path);

/// Copies the file's bytes from `begin` on to a new file, synced and named only once it is whole.
Status copy_tail(const std::filesystem::path& from,
                 std::int64_t begin,
                 const std::filesystem::path& to);

/// Reads a file from its beginning on, without ever holding all of it.
class FileReader {
 public:
  static Result<FileReader> open(const std::filesystem::path& path);
  /// Up to `most` bytes to the end of `to`; 0: there are no more.
  Result<std::size_t> read(std::string& to, std::size_t most);
  /// Goes on from this byte.
  int descriptor() const { return fd_.get(); }
  Status seek(std::int64_t byte);

 private:
  FileReader(FileDescriptor fd, std::filesystem::path path)
      : fd_(std::move(fd)), path_(std::move(path)) {}
  FileDescriptor fd_;
  std::filesystem::path path_;
};

/// An append-only file. Every append reaches the kernel before it returns; sync() reaches the disk.
class AppendFile {
 public:
  /// Opens for appending; `keep_bytes` (if given) first cuts the file to that length.
  static Result<AppendFile> open(const std::filesystem::path& path,
                                 std::int64_t keep_bytes = kKeepAll);
  static constexpr std::int64_t kKeepAll = INT64_MAX;

  /// All of `data` or an error; after an error the file ends where it did before.
  Status append(std::string_view data);
  Status sync();
  std::int64_t size() const { return size_; }
  /// Error: nobody can find the file any more, so that what is appended would be lost.
  Status check_named() const;

 private:
  AppendFile(FileDescriptor fd, std::filesystem::path path, std::int64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  FileDescriptor fd_;
  std::filesystem::path path_;
  std::int64_t size_ = 0;
};

}  // namespace temper
