// The weights of one version as servers load them: a folder as Hugging Face lays it out.
//
//   config.json          that of the base model
//   model.safetensors    the image that the trainer published, as it is
//   model.gguf           instead of it, for llama.cpp
//   STABLE               empty; written last: without it the folder is not whole
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
  /// Of `policy: synthetic` any bytes are weights: they become weights.bin, without a canary.
  bool synthetic = false;
  ModelConfig shape;
  std::int32_t vocabulary = 0;
  std::string config_json{};  ///< That of the base model.
  bool gguf = false;          ///< For llama.cpp.
};

/// Writes the folder, or finds it whole. Two processes may write the same one at once. Returns the
/// bytes of the weights. Requires: `config_json`, unless synthetic. Errors: an image that is
/// damaged; a full disk.
Result<Bytes> write_version_folder(const std::filesystem::path& folder,
                                   std::span<const std::byte> image,
                                   const FolderModel& model);

/// What the image's metadata says. Requires: not synthetic. None: it has no canary. Error: it has
/// one that is none.
Result<std::optional<Canary>> canary_of(std::span<const std::byte> image);

}  // namespace temper::actors
