// A model as Hugging Face keeps it: a folder with config.json, the weights as model.safetensors or
// in shards with model.safetensors.index.json, generation_config.json, and the files of a
// tokenizer.
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
  /// Reads what the folder says of itself, no weights. Errors name the file. `ignore`: as
  /// parse_config_json() takes it.
  static Result<ModelFolder> open(const std::filesystem::path& folder,
                                  std::span<const std::string> ignore = {});

  const std::filesystem::path& path() const { return path_; }
  const ModelConfig& model() const { return config_.model; }
  /// Of config.json; each tensor has its own.
  StoredType type() const { return config_.type; }
  /// End a response: those of generation_config.json, else of config.json. Empty: neither says.
  const std::vector<std::int32_t>& end_tokens() const { return config_.end_tokens; }
  /// Keys of config.json that are set, not known here, and were to be ignored.
  const std::vector<std::string>& ignored() const { return config_.ignored; }
  /// Names of the files with weights.
  const std::vector<std::string>& shards() const { return shards_; }
  /// Whether it has tokenizer.json.
  bool has_tokenizer() const;

  /// Copies exactly the expected tensors from the files. Errors name the file, and the tensor that
  /// is missing, unknown, of another shape, cut off or not finite. The files must not shrink
  /// meanwhile.
  Status read(std::span<const TensorToRead> expected) const;
  /// The same checks, without keeping a value: what a run reads passes here, and the reverse. Reads
  /// all of the files, a piece at a time.
  Status check(const Layout& layout) const;
  /// Only that each tensor is there and has its shape. Reads the headers of the files.
  Status check_tensors(const Layout& layout) const;

  /// What belongs to it beside config.json and the weights: generation_config.json, files of the
  /// tokenizer, of code or of text. Weights in other formats are left out.
  std::vector<std::string> carried_files() const;
  /// All of it at another place, as links to the same files where the file system can, else copied.
  /// Links are to what a symbolic link points to. Requires: `to` exists.
  Status link_to(const std::filesystem::path& to) const;

 private:
  ModelFolder() = default;
  Status read_index(std::string_view text);
  Status feed(TensorReader& reader) const;

  std::filesystem::path path_;
  ConfigJson config_;
  std::vector<std::string> shards_;
  std::map<std::string, std::string> shard_of_;  ///< By tensor; empty: there is no index.
};

struct ModelFolderToWrite {
  std::string config_json;  ///< Its dtype is set to `type`.
  StoredType type = StoredType::Float32;
  Bytes largest_shard{Bytes::rep{5} << 30};    ///< One tensor may exceed it.
  std::map<std::string, std::string> files{};  ///< Further files by name.
};

/// Errors: the folder or a file cannot be written. config.json comes last, so that a folder with
/// one is whole. Requires: the folder exists.
Status write_model_folder(const std::filesystem::path& folder,
                          const ModelFolderToWrite& what,
                          std::span<const TensorToWrite> tensors);

}  // namespace temper::actors
