#include "core/files.hpp"

#include "core/lfs_pointer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

namespace temper {
namespace {

namespace fs = std::filesystem;

Error failed(const char* verb, const fs::path& path, int errno_value) {
  return io_error(fmt::format("cannot {} {}", verb, path.string()), errno_value);
}

/// Returns 0, or the errno of the write that failed.
int write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

/// Limit for sources of unknown size: a pipe, or a file in /proc.
constexpr std::size_t kLargestUnsized = std::size_t{64} << 20;
/// Limit for untrusted files. A sparse file can claim any size at no cost to its creator.
constexpr std::size_t kLargestUntrusted = std::size_t{1} << 30;

/// Opening a named pipe or a device must not block, and a terminal must not become ours.
constexpr int kNonBlocking = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string_view kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a folder";
    case S_IFSOCK:
      return "a socket";
    case S_IFIFO:
      return "a named pipe";
    case S_IFLNK:
      return "a symbolic link";
    default:
      return "a device";
  }
}

Error not_regular(const fs::path& path, std::string_view found) {
  return invalid_input(fmt::format("{} is {}, not a regular file", path.string(), found));
}

/// Turns the errno of a failed open() into an error.
Error open_failed(const fs::path& path, int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:  // A file has the place of a folder.
      return {ErrorCode::NotFound, path.string() + " does not exist"};
    case ELOOP:
      return not_regular(path, "a symbolic link, and symbolic links are not followed here");
    case ENXIO:
      return not_regular(path, "a socket, or a pipe or device without a process at its other end");
    case EISDIR:
      return not_regular(path, "a folder");
    case EWOULDBLOCK:
      return {ErrorCode::Unavailable,
              path.string() + " is locked by another program's lease; try again"};
    default:
      return failed("open", path, errno_value);
  }
}

/// True for an unnamed pipe opened through a descriptor path. A link inside a folder cannot lead to
/// one.
bool is_unnamed_pipe(int fd, const fs::path& path) {
  const std::string& text = path.native();
  struct statfs system {};
  return (text == "/dev/stdin" || text.starts_with("/dev/fd/") ||
          text.starts_with("/proc/self/fd/")) &&
         ::fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

Result<FileDescriptor> accept_to_read(FileDescriptor fd, const fs::path& path) {
  if (!fd.is_open())
    return open_failed(path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0)
    return failed("inspect", path, errno);
  if (S_ISREG(info.st_mode))
    return fd;
  if (!S_ISFIFO(info.st_mode) || !is_unnamed_pipe(fd.get(), path))
    return not_regular(path, kind_of(info.st_mode));
  // Reads from a pipe block until its writer has written.
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    return failed("open", path, errno);
  return fd;
}

/// The size of `fd`, if it is known before reading.
Result<std::optional<std::size_t>> size_of(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    return failed("inspect", path, errno);
  std::optional<std::size_t> size;
  if (S_ISREG(info.st_mode) && info.st_size > 0)
    size = static_cast<std::size_t>(info.st_size);
  return size;
}

constexpr std::size_t kReadAtOnce = 65536;

/// Limits a read of `most` bytes to what the file still holds. Most files are shorter than one
/// chunk, and zeroing an oversized buffer costs time.
std::size_t read_size(int fd, std::size_t most) {
  constexpr std::size_t kLeast = 4096;  // also for sources of unknown size
  struct stat info {};
  const off_t at = most > kLeast ? ::lseek(fd, 0, SEEK_CUR) : -1;
  if (at < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return most;
  return std::min(
      most, std::max(kLeast, static_cast<std::size_t>(std::max<off_t>(0, info.st_size - at))));
}

}  // namespace

void sync_folder(const fs::path& folder) {
  const FileDescriptor fd(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.is_open())
    ::fsync(fd.get());
}

Result<FileDescriptor> open_to_read(const fs::path& path) {
  return accept_to_read(FileDescriptor(::open(path.c_str(), O_RDONLY | kNonBlocking)), path);
}

Result<FileDescriptor> open_to_read(const UntrustedFolder& folder, const fs::path& name) {
  const fs::path whole = folder.path() / name;
  fs::path place = folder.named.empty() ? "." : folder.named;
  constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;
  FileDescriptor at(::open(place.c_str(), kFolder));
  const fs::path parts = folder.below / name;
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (!at.is_open()) {
      return errno == ENOTDIR
                 ? invalid_input(place.string() +
                                 ": expected a folder, found a symbolic link or a file")
                 : open_failed(place, errno);
    }
    if (*part == ".." || part->is_absolute())
      return invalid_input(
          fmt::format("{} leads out of the folder {}", whole.string(), folder.named.string()));
    if (std::next(part) == parts.end()) {
      return accept_to_read(
          FileDescriptor(::openat(at.get(), part->c_str(), O_RDONLY | O_NOFOLLOW | kNonBlocking)),
          whole);
    }
    place /= *part;
    at = FileDescriptor(::openat(at.get(), part->c_str(), kFolder | O_NOFOLLOW));
  }
  return not_regular(whole, "a folder");
}

Result<FileDescriptor> open_to_write(const fs::path& path, int flags) {
  FileDescriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | kNonBlocking | flags, 0644));
  if (!fd.is_open())
    return errno == ENOENT ? failed("create", path, errno) : open_failed(path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0)
    return failed("inspect", path, errno);
  if (!S_ISREG(info.st_mode))
    return not_regular(path, kind_of(info.st_mode));
  return fd;
}

namespace {

Result<std::string> read_whole(FileReader reader, const fs::path& path, std::size_t largest) {
  TEMPER_TRY(const auto size, size_of(reader.descriptor(), path));
  if (size && *size > largest) {
    return invalid_input(
        fmt::format("{}: expected at most {} bytes, found {}", path.string(), largest, *size));
  }
  std::string content;
  try {
    content.reserve(size.value_or(0));
  } catch (const std::exception&) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("{}: not enough memory to read {} bytes", path.string(), *size)};
  }
  // Bytes appended while we read are left out.
  const std::size_t most = size.value_or(kLargestUnsized);
  while (content.size() < most) {
    TEMPER_TRY(const std::size_t n,
               reader.read(content, std::min(kReadAtOnce, most - content.size())));
    if (n == 0)
      break;
  }
  if (!size && content.size() >= most) {
    return invalid_input(
        fmt::format("{}: expected at most {} bytes from a pipe, found more", path.string(), most));
  }
  if (Status whole = check_lfs_pointer(content); !whole)
    return Error(whole.error()).within(path.string());
  return content;
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  TEMPER_TRY(FileReader reader, FileReader::open(path));
  return read_whole(std::move(reader), path, SIZE_MAX);
}

Result<std::string> read_file(const UntrustedFolder& folder, const fs::path& name) {
  TEMPER_TRY(FileReader reader, FileReader::open(folder, name));
  return read_whole(std::move(reader), folder.path() / name, kLargestUntrusted);
}

Result<FileReader> FileReader::open(const fs::path& path) {
  TEMPER_TRY(FileDescriptor fd, open_to_read(path));
  return FileReader(std::move(fd), path);
}

Result<FileReader> FileReader::open(const UntrustedFolder& folder, const fs::path& name) {
  TEMPER_TRY(FileDescriptor fd, open_to_read(folder, name));
  return FileReader(std::move(fd), folder.path() / name);
}

Result<std::size_t> FileReader::read(std::string& to, std::size_t most) {
  const std::size_t before = to.size();
  most = read_size(fd_.get(), most);
  to.resize(before + most);
  for (;;) {
    const ssize_t n = ::read(fd_.get(), to.data() + before, most);
    if (n < 0 && errno == EINTR)
      continue;
    to.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0)
      return failed("read", path_, errno);
    return static_cast<std::size_t>(n);
  }
}

Status FileReader::seek(std::int64_t byte) {
  if (::lseek(fd_.get(), byte, SEEK_SET) < 0)
    return failed("seek in", path_, errno);
  return {};
}

Status rename_durably(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) {
    return io_error(fmt::format("cannot rename {} to {}", from.string(), to.string()),
                    error.value());
  }
  sync_folder(to.parent_path());
  return {};
}

fs::path free_name(const fs::path& path) {
  for (int n = 1;; ++n) {
    fs::path name = fmt::format("{}-{}", path.string(), n);
    if (std::error_code ignored; !fs::exists(name, ignored))
      return name;
  }
}

Status copy_tail(const fs::path& from, std::int64_t begin, const fs::path& to) {
  const fs::path partial = to.string() + ".partial";
  TEMPER_TRY(FileReader in, FileReader::open(from));
  TEMPER_TRY_STATUS(in.seek(begin));
  TEMPER_TRY(AppendFile out, AppendFile::open(partial, 0));
  std::string piece;
  for (;;) {
    piece.clear();
    TEMPER_TRY(const std::size_t n, in.read(piece, kReadAtOnce));
    if (n == 0)
      break;
    TEMPER_TRY_STATUS(out.append(piece));
  }
  TEMPER_TRY_STATUS(out.sync());
  return rename_durably(partial, to);
}

Status write_file_atomically(const fs::path& path, std::string_view content) {
  return write_file_atomically(path, [&](const ByteSink& sink) { return sink(content); });
}

Status write_file_atomically(const fs::path& path,
                             const std::function<Status(const ByteSink&)>& write) {
  const fs::path temporary = path.string() + ".partial";
  TEMPER_TRY(FileDescriptor file, open_to_write(temporary, O_TRUNC));
  const int fd = file.release();
  const auto status_of = [&path](int error) {
    return error == 0 ? Status() : Status(failed("write", path, error));
  };
  Status status = write([&](std::string_view part) { return status_of(write_all(fd, part)); });
  if (status && ::fsync(fd) != 0)
    status = status_of(errno);
  if (::close(fd) != 0 && status)
    status = status_of(errno);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = status_of(errno);
  if (status)
    sync_folder(path.parent_path());
  else
    ::unlink(temporary.c_str());
  return status;
}

Status make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return failed("create folder", path, error.value());
  sync_folder(path.parent_path());
  return {};
}

Result<AppendFile> AppendFile::open(const fs::path& path, std::int64_t keep_bytes) {
  TEMPER_TRY(FileDescriptor opened, open_to_write(path, 0));
  AppendFile file(std::move(opened), path, 0);
  const int fd = file.fd_.get();
  struct stat status {};
  if (::fstat(fd, &status) != 0)
    return failed("inspect", path, errno);
  if (status.st_size == 0)
    sync_folder(path.parent_path());  // perhaps new: its name must last as long as its content
  file.size_ = std::min<std::int64_t>(status.st_size, keep_bytes);
  if (file.size_ != status.st_size && ::ftruncate(fd, file.size_) != 0) {
    return failed("truncate", path, errno);
  }
  if (::lseek(fd, 0, SEEK_END) < 0)
    return failed("seek in", path, errno);
  return file;
}

Status AppendFile::append(std::string_view data) {
  if (const int error = write_all(fd_.get(), data); error != 0) {
    // Remove the part that was written, so that the file still ends at a whole record.
    if (::ftruncate(fd_.get(), size_) == 0)
      ::lseek(fd_.get(), 0, SEEK_END);
    return failed("append to", path_, error);
  }
  size_ += static_cast<std::int64_t>(data.size());
  return {};
}

Status AppendFile::check_named() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0)
    return failed("inspect", path_, errno);
  if (status.st_nlink == 0) {
    return Error{ErrorCode::NotFound,
                 path_.string() +
                     " was deleted while it was open for writing; further writes would be lost"};
  }
  return {};
}

Status AppendFile::sync() {
  if (::fdatasync(fd_.get()) != 0)
    return failed("sync", path_, errno);
  return {};
}

}  // namespace temper
