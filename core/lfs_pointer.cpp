#include "core/lfs_pointer.hpp"

namespace temper {

Status check_lfs_pointer(std::string_view content) {
  if (!content.starts_with("version https://git-lfs.github.com/spec/"))
    return {};
  return invalid_input(
      "this is a git-lfs pointer, not the file itself; run `git lfs pull` in its folder");
}

}  // namespace temper
