// Files, with errors that name the path and the system's reason.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace temper {

/// A folder that other users or programs may have written to. The path up to `named` may lead
/// through symbolic links, because our user chose it; below it none is followed.
struct UntrustedFolder {
  std::filesystem::path named;
  std::filesystem::path below = {};  ///< From `named` to the folder.

  UntrustedFolder(std::filesystem::path folder, std::filesystem::path relative = {})  // NOLINT
      : named(std::move(folder)), below(std::move(relative)) {}
  std::filesystem::path path() const { return below.empty() ? named : named / below; }
  bool operator==(const UntrustedFolder&) const = default;
};

/// Opens a file that somebody else may have put there, to read it. Never waits. Accepts a regular
/// file, and a pipe that is named as a descriptor, so that `temper check <(command)` works. Errors:
/// NotFound; InvalidInput for a named pipe, device, folder or socket; Io.
Result<FileDescriptor> open_to_read(const std::filesystem::path& path);
/// The same for a file in such a folder; `name` may have several parts. InvalidInput also for a
/// symbolic link and for "..".
Result<FileDescriptor> open_to_read(const UntrustedFolder& folder,
                                    const std::filesystem::path& name);

/// Opens a regular file to be written, and makes it if it is missing; `flags` as O_APPEND, O_TRUNC.
/// Never waits, and never follows a symbolic link in the last part of the path: a user who may
/// write to the folder must not choose which file is overwritten.
Result<FileDescriptor> open_to_write(const std::filesystem::path& path, int flags = 0);

/// The whole content of what open_to_read() accepts; of a file without a size (a pipe, /proc) up to
/// 64 MiB, of one in an untrusted folder up to 1 GiB. Errors: also OutOfMemory, and
/// InvalidInput for a git-lfs pointer in the place of the file.
Result<std::string> read_file(const std::filesystem::path& path);
Result<std::string> read_file(const UntrustedFolder& folder, const std::filesystem::path& name);

/// Replaces `path` as a whole or not at all: writes a temporary beside it, syncs, renames, syncs
/// the folder. A failure (a full disk included) leaves the old file as it was and no temporary
/// behind.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Brings the names in a folder to the disk, where that can be done.
void sync_folder(const std::filesystem::path& folder);

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
  /// Errors: see open_to_read().
  static Result<FileReader> open(const std::filesystem::path& path);
  static Result<FileReader> open(const UntrustedFolder& folder, const std::filesystem::path& name);
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
  /// Opens for appending; `keep_bytes` (if given) first cuts the file to that length. Never waits.
  /// InvalidInput: there is something else than a regular file, or a symbolic link.
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
