#include "core/temporary_folder.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <string>
#include <utility>

namespace temper {

Result<TemporaryFolder> TemporaryFolder::create(std::string_view prefix) {
  const char* const base = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nobody writes.
  std::string path =
      fmt::format("{}/{}XXXXXX", base != nullptr && base[0] == '/' ? base : "/tmp", prefix);
  if (::mkdtemp(path.data()) == nullptr)  // Mode 0700.
    return io_error(fmt::format("cannot create a private folder {}", path), errno);
  return TemporaryFolder(path);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty())
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace temper
