// The base checkpoint of a run: made once by `temper-worker pretrain`, kept in a cache by what it
// was made from, copied into the run's folder. One in the cache that is not what its manifest says,
// or has none, is made again.
#pragma once

#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <filesystem>
#include <functional>
#include <string_view>

namespace temper::orchestrator {

/// $TEMPER_CACHE, else $XDG_CACHE_HOME/temper, else ~/.cache/temper.
std::filesystem::path cache_folder();

struct BaseCheckpointOptions {
  std::filesystem::path worker;  ///< The temper-worker program.
  std::filesystem::path log;     ///< Output of the pretraining.
  std::filesystem::path copy_to;
  /// Called now and then with the last line of the pretraining's output.
  std::function<void(std::string_view)> on_progress;
};

/// Errors: the pretraining failed (its last words), or the cache cannot be written.
Status provide_base_checkpoint(const PipelineConfig& config, const BaseCheckpointOptions& options);

}  // namespace temper::orchestrator
