// A new folder that only this user can enter, removed with everything in it at the end; or, where
// its owner was killed, by remove_abandoned_folders() of whoever comes next.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <string_view>

namespace temper {

/// TMPDIR where that is an absolute path, else /tmp.
std::filesystem::path temporary_base();

class TemporaryFolder {
 public:
  /// In temporary_base(); its name is `prefix` and six characters that make it new.
  static Result<TemporaryFolder> create(std::string_view prefix = "temper-");

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  ///< Empty: moved from.
  FileDescriptor lock_;         ///< Of a file in it, held as long as its owner lives.
};

/// Removes folders that create() made under this prefix and whose owner is gone. Returns how many.
std::size_t remove_abandoned_folders(std::string_view prefix = "temper-");

}  // namespace temper
