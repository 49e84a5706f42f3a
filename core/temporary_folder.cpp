#include "core/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace temper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwner = ".owner";

/// The file is locked before it gets its final name, so an owner file that exists and is unlocked
/// has lost its owner.
FileDescriptor locked_owner_file(const fs::path& folder) {
  const fs::path draft = folder / ".owner-draft";
  FileDescriptor fd(::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.is_open() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
    ::rename(draft.c_str(), (folder / kOwner).c_str());
  return fd;
}

bool is_abandoned(const fs::path& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return false;
  const FileDescriptor fd(::open((folder / kOwner).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  return fd.is_open() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

fs::path temporary_base() {
  const char* const base = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nobody writes.
  return base != nullptr && base[0] == '/' ? base : "/tmp";
}

Result<TemporaryFolder> TemporaryFolder::create(std::string_view prefix, const fs::path& base) {
  std::string path = fmt::format("{}/{}XXXXXX", base.string(), prefix);
  if (::mkdtemp(path.data()) == nullptr)  // Mode 0700.
    return io_error(fmt::format("cannot create a private folder {}", path), errno);
  TemporaryFolder folder(path);
  folder.lock_ = locked_owner_file(path);
  return folder;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

std::size_t remove_abandoned_folders(std::string_view prefix, const fs::path& base) {
  std::size_t removed = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(base, error)) {
    if (!entry.path().filename().string().starts_with(prefix) || !is_abandoned(entry.path()))
      continue;
    std::error_code not_removed;
    fs::remove_all(entry.path(), not_removed);
    removed += not_removed ? 0 : 1;
  }
  return removed;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty())
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace temper
