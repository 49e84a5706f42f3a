// A new folder of a test's own, removed with all that is in it when the test ends.
#pragma once

#include "core/temporary_folder.hpp"

#include <filesystem>
#include <string>

namespace temper::test {

class TemporaryFolder {
 public:
  TemporaryFolder() { std::filesystem::create_directory(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

 private:
  temper::TemporaryFolder folder_ = temper::TemporaryFolder::create("temper-test-").value();
  std::filesystem::path path_ = folder_.path() / "files";  ///< Beside the mark of its owner.
};

/// Where a file of this name goes that only this process has: tests run beside each other.
inline std::string temporary_file(const std::string& name) {
  static const TemporaryFolder folder;
  return (folder / name).string();
}

}  // namespace temper::test
