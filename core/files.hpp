// File access. Every error names the path and the reason that the system gave.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace temper {

/// A folder that other users or programs can write to. `named` was chosen by our user, so symbolic
/// links in it are followed. No link is followed below it.
struct UntrustedFolder {
  std::filesystem::path named;
  std::filesystem::path below = {};  ///< Path of the folder relative to `named`.

  UntrustedFolder(std::filesystem::path folder, std::filesystem::path relative = {})  // NOLINT
      : named(std::move(folder)), below(std::move(relative)) {}
  std::filesystem::path path() const { return below.empty() ? named : named / below; }
  bool operator==(const UntrustedFolder&) const = default;
};

/// Opens a file for reading without ever blocking, even if someone else put it there. Accepts
/// regular files, and unnamed pipes given as a descriptor path, so that `temper check <(command)`
/// works. Errors: NotFound; InvalidInput for a named pipe, device, folder or socket; Io.
Result<FileDescriptor> open_to_read(const std::filesystem::path& path);
/// Opens a file in an untrusted folder. `name` may have several components. Also returns
/// InvalidInput for a symbolic link and for "..".
Result<FileDescriptor> open_to_read(const UntrustedFolder& folder,
                                    const std::filesystem::path& name);

/// Opens a regular file for writing and creates it if it is missing; `flags` adds open(2) flags
/// such as O_APPEND or O_TRUNC. Never blocks, and never follows a symbolic link in the last
/// component: a user who can write to the folder must not choose which file is overwritten.
Result<FileDescriptor> open_to_write(const std::filesystem::path& path, int flags = 0);

/// Reads a whole file that open_to_read() accepts. Limits: 64 MiB for a file of unknown size (a
/// pipe, /proc), 1 GiB for a file in an untrusted folder. Errors: as open_to_read(), and
/// OutOfMemory, and InvalidInput if the file is a git-lfs pointer.
Result<std::string> read_file(const std::filesystem::path& path);
Result<std::string> read_file(const UntrustedFolder& folder, const std::filesystem::path& name);

/// Replaces `path` atomically: writes a temporary file beside it, syncs it, renames it, and syncs
/// the folder. On failure (a full disk, for example) the old file is unchanged and no temporary
/// file remains.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);
/// Takes the next bytes of a file.
using ByteSink = std::function<Status(std::string_view)>;
/// The same for content that is not in memory as a whole: `write` passes it to the sink in order.
/// Errors: also those of `write`.
Status write_file_atomically(const std::filesystem::path& path,
                             const std::function<Status(const ByteSink&)>& write);

/// Syncs the directory entries of `folder` to disk. Best effort: errors are ignored.
void sync_folder(const std::filesystem::path& folder);

/// Creates the folder and its parents.
Status make_folder(const std::filesystem::path& path);

/// Renames within a folder and syncs the folder. After a power loss exactly one of the two names
/// exists.
Status rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// The first of `path`-1, `path`-2, ... that does not exist.
std::filesystem::path free_name(const std::filesystem::path& path);

/// Copies the bytes from offset `begin` to the end into the new file `to`. `to` appears only after
/// it is complete and synced.
Status copy_tail(const std::filesystem::path& from,
                 std::int64_t begin,
                 const std::filesystem::path& to);

/// Reads a file sequentially without holding all of it in memory.
class FileReader {
 public:
  /// Errors: see open_to_read().
  static Result<FileReader> open(const std::filesystem::path& path);
  static Result<FileReader> open(const UntrustedFolder& folder, const std::filesystem::path& name);
  /// Appends up to `most` bytes to `to`. Returns the number of bytes read; 0 at the end of the
  /// file.
  Result<std::size_t> read(std::string& to, std::size_t most);
  /// Borrowed; the reader still closes it.
  int descriptor() const { return fd_.get(); }
  /// Continues at this byte offset.
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
  /// Opens for appending; `keep_bytes`, if given, first truncates the file to that length. Never
  /// blocks. Errors: InvalidInput if the path is a symbolic link or not a regular file; Io.
  static Result<AppendFile> open(const std::filesystem::path& path,
                                 std::int64_t keep_bytes = kKeepAll);
  static constexpr std::int64_t kKeepAll = INT64_MAX;

  /// Appends all of `data`. After an error the file has its previous length.
  Status append(std::string_view data);
  Status sync();
  std::int64_t size() const { return size_; }
  /// Error NotFound if the file was deleted, because appended data would be lost.
  Status check_named() const;

 private:
  AppendFile(FileDescriptor fd, std::filesystem::path path, std::int64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  FileDescriptor fd_;
  std::filesystem::path path_;
  std::int64_t size_ = 0;
};

}  // namespace temper
