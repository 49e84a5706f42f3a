// What a model folder is: for people and as JSON.
#pragma once

#include "actors/model_folder/model_folder.hpp"

#include <string>

namespace temper::orchestrator {

struct ModelDescription {
  std::string name;  ///< Of the folder.
  actors::ModelConfig model;
  actors::StoredType type{};
  std::int64_t parameters = 0;
  Bytes stored;  ///< Of the weights, in their files' type as config.json has it.
  std::vector<std::string> files;
  std::int32_t tensors = 0;
  std::string tokenizer;  ///< What it is, or why it is not read.
};

template <class V>
void describe(V& v, ModelDescription& d) {
  v.field(1, "name", d.name);
  v.field(2, "model", d.model);
  v.field(3, "type", d.type);
  v.field(4, "parameters", d.parameters);
  v.field(5, "stored", d.stored);
  v.field(6, "files", d.files);
  v.field(7, "tensors", d.tensors);
  v.field(8, "tokenizer", d.tokenizer);
}

/// Checks that every tensor is there and of its shape; reads no values. Errors: as ModelFolder's.
/// `ignore`: model.ignore of a configuration.
Result<ModelDescription> describe_model(const std::filesystem::path& folder,
                                        std::span<const std::string> ignore = {});

/// Lines for a terminal.
std::string to_text(const ModelDescription& description);

}  // namespace temper::orchestrator
