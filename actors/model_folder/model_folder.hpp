// A Hugging Face model folder: config.json, weights as model.safetensors or as shards with
// model.safetensors.index.json, generation_config.json, and tokenizer files.
#pragma once

#include "actors/model_folder/config_json.hpp"
#include "actors/model_folder/layout.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace temper::actors {

inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kWeightsFile = "model.safetensors";
inline constexpr std::string_view kWeightsIndex = "model.safetensors.index.json";
inline constexpr std::string_view kTokenizerFile = "tokenizer.json";

class ModelFolder {
 public:
  /// Reads the metadata of the folder, no weights. Errors name the file. `ignore`: see
  /// parse_config_json().
  static Result<ModelFolder> open(const std::filesystem::path& folder,
                                  std::span<const std::string> ignore = {});

  const std::filesystem::path& path() const { return path_; }
  const ModelConfig& model() const { return config_.model; }
  /// The type in config.json; each tensor has its own type.
  StoredType type() const { return config_.type; }
  /// End-of-response tokens from generation_config.json, otherwise from config.json; empty if
  /// neither has any.
  const std::vector<std::int32_t>& end_tokens() const { return config_.end_tokens; }
  /// Unknown keys of config.json that are set and ignored as requested.
  const std::vector<std::string>& ignored() const { return config_.ignored; }
  /// Names of the weight files.
  const std::vector<std::string>& shards() const { return shards_; }
  /// True if the folder has tokenizer.json.
  bool has_tokenizer() const;

  /// Copies exactly the expected tensors from the files. Errors name the file and the tensor that
  /// is missing, unknown, truncated, not finite or of another shape. Requires: the files do not
  /// shrink meanwhile.
  Status read(std::span<const TensorToRead> expected) const;
  /// Makes the same checks without keeping values, so it accepts exactly what read() accepts. Reads
  /// all files piece by piece. Errors: as read().
  Status check(const Layout& layout) const;
  /// Checks only that each tensor exists and has its shape. Reads only the headers. Errors: as
  /// read(), except for values that are not finite.
  Status check_tensors(const Layout& layout) const;

  /// Other files of the model: generation_config.json, tokenizer, code and text files. Weights in
  /// other formats are not included.
  std::vector<std::string> carried_files() const;
  /// Creates the folder's files in `to`, as hard links if the file system supports them, otherwise
  /// as copies. Symbolic links are resolved. Requires: `to` exists.
  Status link_to(const std::filesystem::path& to) const;

 private:
  ModelFolder() = default;
  Status read_index(std::string_view text);
  Status feed(TensorReader& reader) const;

  std::filesystem::path path_;
  ConfigJson config_;
  std::vector<std::string> shards_;
  std::map<std::string, std::string> shard_of_;  ///< File names by tensor; empty without an index.
};

struct ModelFolderToWrite {
  std::string config_json;  ///< Its dtype is replaced by `type`.
  StoredType type = StoredType::Float32;
  Bytes largest_shard{Bytes::rep{5} << 30};    ///< A single tensor may exceed it.
  std::map<std::string, std::string> files{};  ///< Other files by name.
};

/// Errors: Io if the folder or a file cannot be written. config.json is written last, so a folder
/// that has one is complete. Requires: the folder exists.
Status write_model_folder(const std::filesystem::path& folder,
                          const ModelFolderToWrite& what,
                          std::span<const TensorToWrite> tensors);

}  // namespace temper::actors
