#include "core/cache_folder.hpp"

#include <cstdlib>

namespace temper {

std::filesystem::path cache_folder() {
  namespace fs = std::filesystem;
  const auto path = [](const char* value) { return fs::path(value != nullptr ? value : ""); };
  if (fs::path own = path(std::getenv("TEMPER_CACHE")); !own.empty())
    return own;
  if (const fs::path xdg = path(std::getenv("XDG_CACHE_HOME")); !xdg.empty())
    return xdg / "temper";
  if (const fs::path home = path(std::getenv("HOME")); !home.empty())
    return home / ".cache" / "temper";
  return fs::temp_directory_path() / "temper-cache";
}

}  // namespace temper
