// One version's weights for servers, in the layout of a Hugging Face model folder.
//
//   config.json          that of the base model
//   model.safetensors    the image that the trainer published, unchanged
//   model.gguf           in its place, for llama.cpp
//
// A version that is an adapter (`model.lora`) has the folder of peft instead:
//
//   adapter_config.json, adapter_model.safetensors
//
// Both have, in addition:
//
//   STABLE               empty; written last: without it the folder is incomplete
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/roles/canary.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <optional>
#include <span>

namespace temper::actors {

struct FolderModel {
  /// For `policy: synthetic`: the image may be any bytes; written as weights.bin, without a canary.
  bool synthetic = false;
  ModelConfig shape;  ///< With `lora`, versions are adapters.
  std::int32_t vocabulary = 0;
  std::string config_json{};  ///< config.json of the base model.
  bool gguf = false;          ///< Write GGUF for llama.cpp.
};

/// Writes the folder unless it is already complete. Two processes may write the same folder at
/// once. Returns the size of the weights. Requires: `config_json` is set unless synthetic. Errors:
/// Corrupt for a damaged image; Io, for example for a full disk.
Result<Bytes> write_version_folder(const std::filesystem::path& folder,
                                   std::span<const std::byte> image,
                                   const FolderModel& model);

/// The canary in the metadata of an image; empty if it has none. Requires: not synthetic. Error:
/// Corrupt for an invalid canary.
Result<std::optional<Canary>> canary_of(std::span<const std::byte> image);

}  // namespace temper::actors
