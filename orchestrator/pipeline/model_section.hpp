// The section `model` when it names a model folder: completes it from the folder, and loads the
// tokenizer.
#pragma once

#include "actors/task/tokenizer.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/teachers.hpp"

#include <filesystem>
#include <functional>
#include <vector>

namespace temper::orchestrator {

/// An invalid key.
struct ModelIssue {
  std::string key;
  std::string message;
};

struct CompletedModel {
  std::vector<ModelIssue> issues;
  std::vector<ModelIssue> warnings;  ///< One for each ignored key of config.json.
};

/// The faster type for matrix products on this host: bfloat16 if its CPU has AVX512-BF16, as all
/// CPUs with AMX do.
actors::ComputeType fastest_compute_type();

/// Replaces `compute_dtype: auto` by that, model.path by the folder that it stands for
/// (find_model_folder()), and reads that folder into the section; `context`, `end_tokens` and
/// `ignore` keep the values that are given. Issues: the folder cannot be read; another key is given
/// and differs from the folder; the context exceeds the folder's. A section that gives both path
/// and vocabulary was completed before (a run's own config.yaml) and is used as it is, even if the
/// folder has moved.
CompletedModel complete_model(actors::ModelConfig& model,
                              const std::function<bool(const std::string&)>& is_given);

/// Replaces reference.model, and that of each teacher, by the absolute path of its folder, if it is
/// there.
void find_reference_model(PipelineConfig& config);
/// Whether a run with the model of this teacher can start; it is not needed to read what a run
/// left. Errors: the folder is not there or not whole; its vocabulary differs from that of the
/// policy; its context is smaller. Of a reference that is not native, only the folder is looked
/// for.
Status check_reference_model(const PipelineConfig& config, const Teacher& teacher);

/// The tokenizer of a run that starts from the model in `base`; empty for `policy: synthetic`,
/// whose Python roles read model.path. Errors: those of Tokenizer::of_model().
Result<actors::Tokenizer> tokenizer_of(const PipelineConfig& config,
                                       const std::filesystem::path& base);

}  // namespace temper::orchestrator
