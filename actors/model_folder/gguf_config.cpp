// The configuration of a model from the metadata of its GGUF file.
#include "actors/model_folder/gguf_names.hpp"
#include "actors/model_folder/gguf_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

namespace temper::actors {
namespace {

/// Reads the keys of one architecture.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(fmt::format("{}.", architecture)) {}

  Result<std::int32_t> count(std::string_view name, std::optional<std::int32_t> otherwise = {}) {
    const std::string key = key_of(name);
    TEMPER_TRY(const auto* const value, file_.find<std::int64_t>(key));
    if (value == nullptr && otherwise)
      return *otherwise;
    if (value == nullptr)
      return corrupt(fmt::format("key '{}': missing", key));
    if (*value < 1 || *value > 1 << 30)
      return corrupt(fmt::format("key '{}': expected 1 to 2^30, found {}", key, *value));
    return static_cast<std::int32_t>(*value);
  }
  Result<double> positive(std::string_view name, std::optional<double> otherwise = {}) {
    const std::string key = key_of(name);
    TEMPER_TRY(const double* const value, file_.find<double>(key));
    if (value == nullptr && otherwise)
      return *otherwise;
    if (value == nullptr)
      return corrupt(fmt::format("key '{}': missing", key));
    if (!(*value > 0 && *value < 1e12))
      return corrupt(fmt::format("key '{}': expected a number > 0, found {}", key, *value));
    return *value;
  }
  Status equals(std::string_view name, std::int64_t expected) {
    const std::string key = key_of(name);
    TEMPER_TRY(const auto* const value, file_.find<std::int64_t>(key));
    if (value == nullptr || *value == expected)
      return {};
    return Error{ErrorCode::Unsupported,
                 fmt::format("key '{}': expected {}, found {}", key, expected, *value)};
  }
  /// Rejects keys that were not read: they may change the computation.
  Status nothing_else() {
    for (const auto& [key, value] : file_.keys()) {
      if (key.starts_with(prefix_) && std::ranges::find(read_, key) == read_.end() &&
          !is_off(key, value)) {
        return Error{ErrorCode::Unsupported,
                     fmt::format("key '{}': a setting that Temper does not support; use the "
                                 "model's Hugging Face folder, or another model",
                                 key)};
      }
    }
    return {};
  }

 private:
  std::string key_of(std::string_view name) {
    read_.push_back(prefix_ + std::string(name));
    return read_.back();
  }
  /// True if the value changes nothing.
  bool is_off(const std::string& key, const GgufValue& value) const {
    if (key == prefix_ + "attention.causal")
      return value == GgufValue(true);
    if (key == prefix_ + "rope.scaling.type")
      return value == GgufValue(std::string("none"));
    return value == GgufValue(false) || value == GgufValue(std::int64_t{0}) ||
           value == GgufValue(0.0);
  }

  const GgufFile& file_;
  const std::string prefix_;
  std::vector<std::string> read_;
};

Result<Architecture> read_architecture_key(const GgufFile& file) {
  constexpr std::string_view kKey = "general.architecture";
  TEMPER_TRY(const std::string* const name, file.find<std::string>(kKey));
  std::vector<std::string_view> known;
  for (const auto& [architecture, _] : EnumNames<Architecture>::value) {
    known.push_back(gguf_architecture(architecture));
    if (name != nullptr && *name == known.back())
      return architecture;
  }
  return Error{ErrorCode::Unsupported,
               fmt::format("key '{}': expected one of {}, found {}",
                           kKey,
                           fmt::join(known, ", "),
                           name == nullptr ? "none" : *name)};
}

/// Rows of the embedding.
Result<std::int32_t> embedding_rows(const GgufFile& file) {
  const std::string name = gguf_name_of(kEmbeddingTensor).value_or("");
  const auto embedding = file.tensors().find(name);
  if (embedding == file.tensors().end())
    return corrupt(fmt::format("tensor '{}': missing", name));
  return static_cast<std::int32_t>(embedding->second.shape.front());
}

}  // namespace

Result<ModelConfig> read_gguf_config(const GgufFile& file) {
  ModelConfig m;
  TEMPER_TRY(m.architecture, read_architecture_key(file));
  ArchitectureKeys keys(file, gguf_architecture(m.architecture));
  TEMPER_TRY(m.layers, keys.count("block_count"));
  TEMPER_TRY(m.hidden, keys.count("embedding_length"));
  TEMPER_TRY(m.ffn, keys.count("feed_forward_length"));
  TEMPER_TRY(m.heads, keys.count("attention.head_count"));
  TEMPER_TRY(m.kv_heads, keys.count("attention.head_count_kv", m.heads));
  TEMPER_TRY(const std::int32_t context, keys.count("context_length"));
  m.context = Tokens(context);
  TEMPER_TRY(m.head_dim, keys.count("attention.key_length", std::max(1, m.hidden / m.heads)));
  TEMPER_TRY_STATUS(keys.equals("attention.value_length", *m.head_dim));
  TEMPER_TRY_STATUS(keys.equals("rope.dimension_count", *m.head_dim));
  TEMPER_TRY(m.rope_base, keys.positive("rope.freq_base", 10000.0));
  TEMPER_TRY(const double epsilon, keys.positive("attention.layer_norm_rms_epsilon"));
  // The file has a float32; its shortest decimal form is the number that the author wrote.
  m.norm_epsilon = std::stod(fmt::format("{}", static_cast<float>(epsilon)));
  TEMPER_TRY(m.vocabulary, embedding_rows(file));
  TEMPER_TRY_STATUS(keys.equals("vocab_size", *m.vocabulary));
  TEMPER_TRY_STATUS(keys.nothing_else());
  m.tie_embeddings = !file.tensors().contains(gguf_name_of(kHeadTensor).value_or(""));
  return m;
}

}  // namespace temper::actors
