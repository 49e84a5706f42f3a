#include "actors/model_folder/config_json.hpp"

#include "actors/model_folder/config_keys.hpp"
#include "core/check.hpp"
#include "core/json_document.hpp"
#include "core/scalar_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace temper::actors {
namespace {

struct Known {
  Architecture architecture;
  std::string_view model_type;
};
constexpr std::array<Known, 3> kKnown{{{Architecture::Llama, "llama"},
                                       {Architecture::Qwen2, "qwen2"},
                                       {Architecture::Qwen3, "qwen3"}}};

std::string_view model_type_of(Architecture architecture) {
  return std::ranges::find(kKnown, architecture, &Known::architecture)->model_type;
}

/// Appended to every refusal of a computation.
constexpr std::string_view kPythonRoles =
    "; the Python roles temper.torch:Engine and temper.torch:Trainer run models that "
    "AutoModelForCausalLM of transformers loads, if every layer has a KV cache";

/// Reads keys and collects all problems.
class Reader {
 public:
  Reader(const nlohmann::json& object, std::span<const std::string> ignore)
      : object_(object), ignore_(ignore) {}

  template <class... Args>
  void wrong(fmt::format_string<Args...> what, Args&&... args) {
    issues_.push_back(fmt::format(what, std::forward<Args>(args)...));
  }

  /// Reports a computation that only other roles have.
  template <class... Args>
  void unsupported(fmt::format_string<Args...> what, Args&&... args) {
    wrong(what, std::forward<Args>(args)...);
    python_roles_ = kPythonRoles;
  }

  const nlohmann::json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  std::int32_t count(const char* key, std::optional<std::int32_t> otherwise = {}) {
    const nlohmann::json* const value = find(key);
    if (value == nullptr && otherwise)
      return *otherwise;
    if (value == nullptr) {
      wrong("`{}` is missing", key);
      return 2;
    }
    constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
    if (!value->is_number_unsigned() || *value < 1 || *value > kMost) {
      wrong("`{}`: expected an integer >= 1, found {}", key, value->dump());
      return 2;
    }
    return value->get<std::int32_t>();
  }

  double positive(const nlohmann::json& from, const char* key, double otherwise) {
    const auto at = from.find(key);
    if (at == from.end() || at->is_null())
      return otherwise;
    if (at->is_number() && at->get<double>() > 0)
      return at->get<double>();
    wrong("`{}`: expected a number > 0, found {}", key, at->dump());
    return otherwise;
  }

  /// Reports an unknown key.
  void unknown(const std::string& key, const nlohmann::json& value) {
    if (std::ranges::find(ignore_, key) != ignore_.end()) {
      ignored_.push_back(key);
      return;
    }
    wrong(
        "`{}` is {}, an unknown key; if it does not change what the network computes, "
        "add it to model.ignore",
        key,
        value.dump());
  }

  const nlohmann::json& object() const { return object_; }
  const std::vector<std::string>& issues() const { return issues_; }
  /// One line with all problems.
  Error error() const {
    return invalid_input(fmt::format("{}{}", fmt::join(issues_, "; "), python_roles_));
  }
  const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  const nlohmann::json& object_;
  const std::span<const std::string> ignore_;
  std::vector<std::string> issues_;
  std::string_view python_roles_;  ///< Empty unless a computation is not supported.
  std::vector<std::string> ignored_;
};

std::optional<Architecture> read_architecture(Reader& reader) {
  std::vector<std::string> known;
  known.reserve(EnumNames<Architecture>::value.size());
  for (const auto& [value, name] : EnumNames<Architecture>::value)
    known.emplace_back(name);
  const nlohmann::json* const list = reader.find("architectures");
  if (list == nullptr || !list->is_array() || list->size() != 1 || !list->front().is_string()) {
    reader.wrong("`architectures` is {}, expected one of {}",
                 list == nullptr ? "missing" : list->dump(),
                 fmt::join(known, ", "));
    return std::nullopt;
  }
  const auto architecture = from_name<Architecture>(list->front().get<std::string>());
  if (!architecture) {
    reader.unsupported("architecture {} is not supported; expected one of {}",
                       list->front().get<std::string>(),
                       fmt::join(known, ", "));
    return std::nullopt;
  }
  const nlohmann::json* const type = reader.find("model_type");
  if (type != nullptr && *type != model_type_of(*architecture)) {
    reader.unsupported("`model_type` is {}, but {} has `{}`",
                       type->dump(),
                       name_of(*architecture),
                       model_type_of(*architecture));
  }
  return architecture;
}

void check_settings(Reader& reader) {
  for (const auto& [key, value] : reader.object().items()) {
    const JudgedKey judged = judge_key(key, value);
    if (judged.effect == JudgedKey::Effect::Refused)
      reader.unsupported("{}", judged.why);
    else if (judged.effect == JudgedKey::Effect::Unknown)
      reader.unknown(key, value);
  }
}

/// The required keys of a `llama3` scaling besides rope_type.
constexpr std::array kScalingKeys{
    "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"};

RopeScaling read_scaling(Reader& reader, const char* key, const nlohmann::json& rope) {
  for (const char* const name : kScalingKeys) {
    if (!rope.contains(name) || rope[name].is_null())
      reader.wrong("`{}` of rope_type llama3 has no `{}`", key, name);
  }
  RopeScaling scaling;
  scaling.factor = reader.positive(rope, "factor", scaling.factor);
  scaling.low_freq_factor = reader.positive(rope, "low_freq_factor", scaling.low_freq_factor);
  scaling.high_freq_factor = reader.positive(rope, "high_freq_factor", scaling.high_freq_factor);
  const double context = reader.positive(rope, "original_max_position_embeddings", 8192);
  scaling.original_context = Tokens(static_cast<std::int64_t>(std::min(context, 1e9)));
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    reader.wrong("`{}.high_freq_factor` is {}, expected more than low_freq_factor ({})",
                 key,
                 scaling.high_freq_factor,
                 scaling.low_freq_factor);
  }
  return scaling;
}

/// `rope_type`, or `type` in older files; both if they differ.
std::string rope_type(const nlohmann::json& rope) {
  std::string found;
  for (const char* const name : {"rope_type", "type"}) {
    const auto at = rope.find(name);
    if (at == rope.end() || at->is_null())
      continue;
    const std::string type = at->is_string() ? at->get<std::string>() : at->dump();
    if (found.empty())
      found = type;
    else if (type != found)
      found += " and " + type;
  }
  return found.empty() ? "default" : found;
}

/// Reads base and scaling of the angles from either of the two places where they can be.
void read_rope(Reader& reader, ModelConfig& model) {
  model.rope_base = reader.positive(reader.object(), "rope_theta", 10000);
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* const rope = reader.find(key);
    if (rope == nullptr)
      continue;
    if (!rope->is_object()) {
      reader.wrong("`{}`: expected an object, found {}", key, rope->dump());
      continue;
    }
    const std::string type = rope_type(*rope);
    const bool llama3 = type == "llama3";
    if (!llama3 && type != "default") {
      reader.unsupported(
          "`{}.rope_type` is {}, which is not supported; expected default or llama3", key, type);
      continue;
    }
    for (const auto& [name, value] : rope->items()) {
      const bool known = name == "rope_type" || name == "type" || name == "rope_theta" ||
                         (name == "partial_rotary_factor" && value == 1) ||
                         (llama3 && std::ranges::find(kScalingKeys, name) != kScalingKeys.end());
      if (!known && !value.is_null()) {
        reader.unsupported("`{}.{}` is {}, which is not supported with rope_type {}",
                           key,
                           name,
                           value.dump(),
                           type);
      }
    }
    model.rope_base = reader.positive(*rope, "rope_theta", model.rope_base);
    if (llama3)
      model.rope_scaling = read_scaling(reader, key, *rope);
  }
}

StoredType read_type(Reader& reader) {
  for (const char* const key : {"dtype", "torch_dtype"}) {
    const nlohmann::json* const value = reader.find(key);
    if (value == nullptr)
      continue;
    const auto type =
        value->is_string() ? from_name<StoredType>(value->get<std::string>()) : std::nullopt;
    if (type)
      return *type;
  }
  return StoredType::Float32;  // Represents all types; the file has the type of each tensor.
}

/// Empty if the value is neither a token nor a list of tokens.
std::optional<std::vector<std::int32_t>> tokens_of(const nlohmann::json& value) {
  std::vector<std::int32_t> tokens;
  for (const nlohmann::json& token : value.is_array() ? value : nlohmann::json::array({value})) {
    if (!token.is_number_unsigned() || token > std::numeric_limits<std::int32_t>::max())
      return std::nullopt;
    tokens.push_back(token.get<std::int32_t>());
  }
  return tokens;
}

/// Compares the fields of a ModelConfig with the bounds of its keys.
struct Bounds {
  template <class T>
  void field(int, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>& meta) {
    if constexpr (Ordered<T> && !OptionalLike<T>) {
      if ((meta.min && value < *meta.min) || (meta.max && value > *meta.max))
        reader.wrong("{} = {} is outside the supported range", name, scalar_text(value));
    } else if constexpr (std::same_as<T, std::optional<RopeScaling>>) {
      if (value)
        describe(*this, *value);
    }
  }
  Reader& reader;
};

}  // namespace

Result<ConfigJson> parse_config_json(std::string_view text, std::span<const std::string> ignore) {
  const nlohmann::json object = parse_json(text);
  if (!object.is_object())
    return invalid_input("expected a JSON object");
  Reader reader(object, ignore);
  const auto architecture = read_architecture(reader);
  if (!architecture)  // The meaning of the other keys is unknown.
    return reader.error();
  check_settings(reader);
  ConfigJson config;
  ModelConfig& m = config.model;
  m.architecture = *architecture;
  const bool llama = m.architecture == Architecture::Llama;
  m.hidden = reader.count("hidden_size");
  m.layers = reader.count("num_hidden_layers");
  m.heads = reader.count("num_attention_heads");
  m.kv_heads = reader.count("num_key_value_heads", llama ? std::optional(m.heads) : std::nullopt);
  m.ffn = reader.count("intermediate_size");
  m.context = Tokens(reader.count("max_position_embeddings"));
  const bool own_head =
      m.architecture == Architecture::Qwen3;  // Its default is not hidden / heads.
  m.head_dim =
      reader.count("head_dim", own_head ? std::nullopt : std::optional(m.hidden / m.heads));
  m.vocabulary = reader.count("vocab_size");
  m.norm_epsilon = reader.positive(object, "rms_norm_eps", 1e-6);
  read_rope(reader, m);
  if (const nlohmann::json* const tied = reader.find("tie_word_embeddings"); tied != nullptr) {
    if (tied->is_boolean())
      m.tie_embeddings = tied->get<bool>();
    else
      reader.wrong("`tie_word_embeddings`: expected true or false, found {}", tied->dump());
  }
  config.type = read_type(reader);
  if (const nlohmann::json* const end = reader.find("eos_token_id"); end != nullptr) {
    if (auto tokens = tokens_of(*end))
      config.end_tokens = *std::move(tokens);
    else
      reader.wrong("`eos_token_id`: expected a token id or a list of them, found {}", end->dump());
  }
  if (reader.issues().empty()) {
    Bounds bounds{reader};
    describe(bounds, m);
  }
  if (!reader.issues().empty())
    return reader.error();
  m.ignore.assign(ignore.begin(), ignore.end());
  config.ignored = reader.ignored();
  return config;
}

std::string write_config_json(const ConfigJson& config) {
  const ModelConfig& m = config.model;
  TEMPER_CHECK(m.vocabulary.has_value(), "a config.json needs a vocabulary");
  nlohmann::ordered_json out = {
      {"architectures", {name_of(m.architecture)}},
      {"model_type", model_type_of(m.architecture)},
      {"hidden_size", m.hidden},
      {"intermediate_size", m.ffn},
      {"num_hidden_layers", m.layers},
      {"num_attention_heads", m.heads},
      {"num_key_value_heads", m.kv_heads},
      {"head_dim", m.head_size()},
      {"hidden_act", "silu"},
      {"rms_norm_eps", m.norm_epsilon},
      {"rope_theta", m.rope_base},
      {"max_position_embeddings", m.context.count()},
      {"vocab_size", *m.vocabulary},
      {"tie_word_embeddings", m.tie_embeddings},
      {"dtype", name_of(config.type)},
      {"torch_dtype", name_of(config.type)},
  };
  if (m.rope_scaling) {
    out["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", m.rope_scaling->factor},
        {"low_freq_factor", m.rope_scaling->low_freq_factor},
        {"high_freq_factor", m.rope_scaling->high_freq_factor},
        {"original_max_position_embeddings", m.rope_scaling->original_context.count()}};
  }
  // Some of these have other defaults in transformers.
  out["bos_token_id"] = nullptr;
  out["eos_token_id"] = nullptr;
  if (config.end_tokens.size() == 1)
    out["eos_token_id"] = config.end_tokens.front();
  else if (!config.end_tokens.empty())
    out["eos_token_id"] = config.end_tokens;
  return out.dump(2) + "\n";
}

std::string with_stored_type(std::string_view config_json, StoredType type) {
  auto object = nlohmann::ordered_json::parse(config_json);
  object["dtype"] = name_of(type);
  object["torch_dtype"] = name_of(type);
  return object.dump(2) + "\n";
}

Result<std::vector<std::int32_t>> parse_end_tokens(std::string_view generation_config) {
  const nlohmann::json object = parse_json(generation_config);
  if (!object.is_object())
    return invalid_input("expected a JSON object");
  const auto end = object.find("eos_token_id");
  if (end == object.end() || end->is_null())
    return std::vector<std::int32_t>();
  if (auto tokens = tokens_of(*end))
    return *std::move(tokens);
  return invalid_input(
      fmt::format("`eos_token_id`: expected a token id or a list of them, found {}", end->dump()));
}

}  // namespace temper::actors
