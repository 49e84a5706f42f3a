// Runs a comparison of Temper with transformers on a model folder.
#pragma once

#include "orchestrator/model_comparison/model_comparison.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct CompareOptions {
  std::string name;                    ///< Of the model, for the output.
  std::filesystem::path folder;        ///< Model folder.
  std::vector<std::string> ignore{};   ///< model.ignore of a configuration.
  std::string python;                  ///< Interpreter: a path, or a name in PATH.
  std::filesystem::path worker;        ///< The temper-worker program.
  std::optional<Duration> deadline{};  ///< Of each process. Default: grows with the model.
};

/// Computes with transformers first, then with Temper, so that only one of them is in memory.
///
/// Errors: those of ModelFolder; NotFound for an interpreter that is missing or lacks a package,
/// with the next step; Unsupported for a build without libtorch; Timeout for a process that was
/// killed after its deadline, with all that it started; Unavailable if the user stopped it;
/// Internal for a process that failed, or whose report is invalid.
Result<ModelComparison> compare_model(const CompareOptions& options);

}  // namespace temper::orchestrator
