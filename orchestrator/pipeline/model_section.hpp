// The section `model` where it names a folder: what the folder says, and what its tokens mean.
#pragma once

#include "actors/task/tokenizer.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <filesystem>
#include <functional>
#include <vector>

namespace temper::orchestrator {

/// A key that is wrong, and why.
struct ModelIssue {
  std::string key;
  std::string message;
};

struct CompletedModel {
  std::vector<ModelIssue> issues;
  std::vector<ModelIssue> warnings;  ///< One for each key of config.json that is ignored.
};

/// Reads the folder of model.path into the section. `context`, `end_tokens` and `ignore` stay where
/// they are given. What is wrong: the folder cannot be read; another key is given and differs; a
/// context beyond the folder's. A section that names the vocabulary beside the path is one that was
/// completed before (a run's own config.yaml): it is taken as it is, wherever the folder is now.
CompletedModel complete_model(actors::ModelConfig& model,
                              const std::function<bool(const std::string&)>& is_given);

/// What ids mean where the run begins with this folder. Errors: as Tokenizer::of_model().
Result<actors::Tokenizer> tokenizer_of(const PipelineConfig& config,
                                       const std::filesystem::path& base);

}  // namespace temper::orchestrator
