// A private temporary folder (mode 0700), removed recursively by its destructor. If the owning
// process is killed first, the next call of remove_abandoned_folders() removes the folder.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <string_view>

namespace temper {

/// The value of TMPDIR if it is an absolute path, otherwise /tmp.
std::filesystem::path temporary_base();

class TemporaryFolder {
 public:
  /// Creates a folder in `base`, named `prefix` plus six random characters. Errors: Io.
  static Result<TemporaryFolder> create(std::string_view prefix = "temper-",
                                        const std::filesystem::path& base = temporary_base());

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  ///< Empty after a move.
  FileDescriptor lock_;         ///< Lock on a file in the folder; released when the owner exits.
};

/// Removes folders that create() made with this prefix in this base and whose owner has exited.
/// Returns the number of folders removed.
std::size_t remove_abandoned_folders(std::string_view prefix = "temper-",
                                     const std::filesystem::path& base = temporary_base());

}  // namespace temper
