// A new folder that only this user can enter, removed with everything in it at the end.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string_view>

namespace temper {

class TemporaryFolder {
 public:
  /// In TMPDIR where that is an absolute path, else in /tmp; its name is `prefix` and six
  /// characters that make it new.
  static Result<TemporaryFolder> create(std::string_view prefix = "temper-");

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  ///< Empty: moved from.
};

}  // namespace temper
