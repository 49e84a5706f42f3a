// Describes a model folder, as text and as JSON.
#pragma once

#include "actors/model_folder/model_folder.hpp"

#include <string>

namespace temper::orchestrator {

struct ModelDescription {
  std::string name;  ///< Name of the folder.
  actors::ModelConfig model;
  actors::StoredType type{};
  std::int64_t parameters = 0;
  Bytes stored;  ///< Size of the weights, in the type of the files according to config.json.
  std::vector<std::string> files;
  std::int32_t tensors = 0;
  std::string tokenizer;  ///< Description, or why it cannot be read.
};

void describe(auto& v, ModelDescription& d) {
  v.field(1, "name", d.name);
  v.field(2, "model", d.model);
  v.field(3, "type", d.type);
  v.field(4, "parameters", d.parameters);
  v.field(5, "stored", d.stored);
  v.field(6, "files", d.files);
  v.field(7, "tensors", d.tensors);
  v.field(8, "tokenizer", d.tokenizer);
}

/// `path` may be anything that find_model_folder() accepts. Checks that every tensor exists and has
/// its shape; reads no values. `ignore`: model.ignore of a configuration. Errors: those of
/// ModelFolder.
Result<ModelDescription> describe_model(const std::filesystem::path& path,
                                        std::span<const std::string> ignore = {});

/// Text for a terminal.
std::string to_text(const ModelDescription& description);

}  // namespace temper::orchestrator
