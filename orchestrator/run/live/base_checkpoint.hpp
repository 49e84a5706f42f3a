// The base model of a run, a folder in the Hugging Face format: model.path, or a model that
// `temper-worker pretrain` makes once and that is cached by its inputs. It is copied into the run
// folder. A cached model that does not match its manifest, or has none, is made again.
#pragma once

#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <filesystem>
#include <functional>
#include <string_view>

namespace temper::orchestrator {

struct BaseCheckpointOptions {
  std::filesystem::path worker;  ///< The temper-worker program.
  std::filesystem::path log;     ///< Output of the pretraining.
  std::filesystem::path folder;  ///< To be made.
  /// Called regularly with the last line of the pretraining's output.
  std::function<void(std::string_view)> on_progress;
  /// Stops the pretraining when it returns true, beside signals; null: never.
  std::function<bool()> stopped;
};

/// On return the folder is complete or absent. Files of model.path are linked if the file system
/// can, so that a large model is not stored twice. Errors: the folder of model.path does not match
/// the configuration, or a tensor is missing or has another shape; the pretraining failed (its last
/// output); a folder cannot be written.
Status provide_base_checkpoint(const PipelineConfig& config, const BaseCheckpointOptions& options);

}  // namespace temper::orchestrator
