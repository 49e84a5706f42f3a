// Exports a checkpoint of a run as a model folder: its weights with the config.json, tokenizer and
// generation_config.json of the base. The checkpoint of an adapter (model.lora) is exported as a
// folder of peft, or merged into the base as a model folder.
#pragma once

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/safetensors.hpp"
#include "core/ids.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace temper::orchestrator {

struct ModelExport {
  std::filesystem::path run;
  std::optional<PolicyVersion> version;  ///< None: the newest intact checkpoint. 0: the base.
  std::filesystem::path to;              ///< Must not exist, or be empty.
  /// None: that of the base; float32 for an adapter.
  std::optional<actors::StoredType> type{};
  bool best = false;   ///< Export best/ (run/best_checkpoint.hpp).
  bool merge = false;  ///< Merge an adapter into the base.
};

/// "RUN", "RUN@STEP" or "RUN@best". Error: STEP is not a number.
Result<ModelExport> parse_export_source(const std::string& text);

/// Training lost to rounding: a weight that changed by less than the type can represent is stored
/// with the value of the base.
struct RoundingLoss {
  std::uint64_t changed = 0;  ///< Weights that differ from the base.
  std::uint64_t lost = 0;     ///< Of them, those stored with the value of the base.
};

struct ExportedModel {
  PolicyVersion version;
  std::filesystem::path from;  ///< The exported checkpoint, or the base.
  actors::StoredType type{};
  RoundingLoss rounding{};
  bool adapter = false;  ///< The folder is one of peft.
};

/// The source that export_model() would read, without reading its weights. Errors: not a run with a
/// model; no such checkpoint (the message lists those that exist); its files differ from those
/// saved.
Result<ExportedModel> find_export_source(const ModelExport& what);

/// Writes the folder completely or not at all. Errors: not a run with a model; no such checkpoint
/// (the message lists those that exist); a damaged checkpoint; a trainer that saves no
/// model.safetensors; weights of another model than the base; a folder that cannot be written.
Result<ExportedModel> export_model(const ModelExport& what);

/// Writes a model folder in float32: a base merged with the adapter of another folder. Errors:
/// those of reading both; a folder that cannot be written.
Status write_merged(const actors::ModelFolder& base,
                    const std::filesystem::path& adapter,
                    const std::filesystem::path& to);

}  // namespace temper::orchestrator
