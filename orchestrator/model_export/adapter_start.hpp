// The adapter of a peft folder as the start of a run (`temper run --from FOLDER`). With
// `model.lora` of the same shape, the run continues to train it: it is copied into the folder
// `adapter` of the base. Without `model.lora`, it is merged into the base.
#pragma once

#include "actors/model_folder/adapter_folder.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <filesystem>

namespace temper::orchestrator {

struct AdapterStart {
  std::filesystem::path folder;  ///< Of peft.
  actors::AdapterConfigJson config;
  bool merges = false;
};

/// Reads and checks the adapter without changing anything. Errors name the file or the key: those
/// of reading it; no real policy; a shape other than that of model.lora; targets or tensors that
/// the model does not have.
Result<AdapterStart> find_adapter_start(const std::filesystem::path& folder,
                                        const PipelineConfig& config);

/// Changes the base of a run, which has no other adapter, into one that starts from the adapter. On
/// error the base must not be used.
Status apply_adapter_start(const AdapterStart& start,
                           const PipelineConfig& config,
                           const std::filesystem::path& base);

}  // namespace temper::orchestrator
