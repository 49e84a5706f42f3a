#include "core/replace.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

namespace temper {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<AppendFile> put_in_place(AppendFile file, const fs::path& from, const fs::path& to) {
  TEMPER_TRY_STATUS(file.sync());
  TEMPER_TRY_STATUS(rename_durably(from, to));
  return AppendFile::open(to);
}

Result<bool> exchange_durably(const fs::path& a, const fs::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
      return false;
    return io_error(fmt::format("cannot exchange {} with {}", a.string(), b.string()), errno);
  }
  sync_folder(a.parent_path());
  return true;
}

Status put_folder_in_place(const fs::path& partial, const fs::path& folder) {
  const fs::path replaced = folder.string() + ".replaced";
  const auto remove = [](const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);
    return error ? Status(io_error("cannot remove " + path.string(), error.value())) : Status();
  };
  if (std::error_code ignored; fs::exists(folder, ignored)) {
    TEMPER_TRY(const bool exchanged, exchange_durably(partial, folder));
    if (exchanged)
      return remove(partial);
    TEMPER_TRY_STATUS(remove(replaced));
    TEMPER_TRY_STATUS(rename_durably(folder, replaced));
  }
  TEMPER_TRY_STATUS(rename_durably(partial, folder));
  return remove(replaced);
}

}  // namespace temper
