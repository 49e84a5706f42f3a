// A checkpoint of a run as a model folder: its weights under the config.json of the base, and what
// else the base came with (tokenizer, generation_config.json).
#pragma once

#include "actors/model_folder/safetensors.hpp"
#include "core/ids.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace temper::orchestrator {

struct ModelExport {
  std::filesystem::path run;
  std::optional<PolicyVersion> version;      ///< None: of the newest whole checkpoint. 0: the base.
  std::filesystem::path to;                  ///< Not there yet, or empty.
  std::optional<actors::StoredType> type{};  ///< None: that of the base.
  bool best = false;                         ///< That of best/ (run/best_checkpoint.hpp).
};

/// "RUN", "RUN@STEP" or "RUN@best". Error: STEP is not a number.
Result<ModelExport> parse_export_source(const std::string& text);

/// What rounding takes away of training: a weight that changed by less than the type can hold is
/// stored as the base has it.
struct RoundingLoss {
  std::uint64_t changed = 0;  ///< Weights that differ from the base's.
  std::uint64_t lost = 0;     ///< Of them, those that are stored as the base's.
};

struct ExportedModel {
  PolicyVersion version;
  std::filesystem::path from;  ///< The checkpoint, or the base.
  actors::StoredType type{};
  RoundingLoss rounding{};
};

/// What export_model() would read, which is not read. Errors: no run with a model, no such
/// checkpoint (with those that are there), one whose files are not those that were saved.
Result<ExportedModel> find_export_source(const ModelExport& what);

/// The folder is whole or not there. Errors: no run with a model, no such checkpoint (with those
/// that are there), a damaged one, one whose trainer keeps no model.safetensors, weights that are
/// not of the base's model, a folder that cannot be written.
Result<ExportedModel> export_model(const ModelExport& what);

}  // namespace temper::orchestrator
