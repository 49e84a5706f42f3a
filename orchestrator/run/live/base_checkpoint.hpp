// The base model of a run: a folder as Hugging Face keeps one. That of model.path, or one that is
// made by `temper-worker pretrain` once, kept in a cache by what it was made from, and copied into
// the run's folder. One in the cache that is not what its manifest says, or has none, is made
// again.
#pragma once

#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <filesystem>
#include <functional>
#include <string_view>

namespace temper::orchestrator {

/// $TEMPER_CACHE, else $XDG_CACHE_HOME/temper, else ~/.cache/temper; an empty one is as none.
std::filesystem::path cache_folder();

struct BaseCheckpointOptions {
  std::filesystem::path worker;  ///< The temper-worker program.
  std::filesystem::path log;     ///< Output of the pretraining.
  std::filesystem::path folder;  ///< To be made.
  /// Called now and then with the last line of the pretraining's output.
  std::function<void(std::string_view)> on_progress;
  /// Stops the pretraining when it returns true, beside signals; null: never.
  std::function<bool()> stopped;
};

/// The folder is whole or not there. Of model.path its files are linked where the file system can,
/// so that a large model takes no room twice. Errors: the folder of model.path is not what the
/// configuration says, or a tensor of it is missing or of another shape; the pretraining failed
/// (its last words); a folder cannot be written.
Status provide_base_checkpoint(const PipelineConfig& config, const BaseCheckpointOptions& options);

}  // namespace temper::orchestrator
