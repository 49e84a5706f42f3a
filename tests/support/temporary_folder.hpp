// A new folder of a test's own, removed with all that is in it when the test ends.
#pragma once

#include "core/temporary_folder.hpp"

#include <filesystem>
#include <string>

namespace temper::test {

class TemporaryFolder {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

 private:
  temper::TemporaryFolder folder_ = temper::TemporaryFolder::create("temper-test-").value();
};

}  // namespace temper::test
