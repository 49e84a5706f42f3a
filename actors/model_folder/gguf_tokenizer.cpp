#include "actors/model_folder/gguf_tokenizer.hpp"

#include "actors/model_folder/gguf_names.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace temper::actors {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Kinds of tokens in GGUF.
constexpr std::int64_t kControlKind = 3, kUserDefinedKind = 4, kUnusedKind = 5;

std::string key_of(std::string_view name) {
  return fmt::format("tokenizer.ggml.{}", name);
}

OrderedJson byte_level(bool splits) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", splits}};
}

OrderedJson split_by(std::string_view regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

/// How a text is split before its pieces are encoded.
struct Splitting {
  OrderedJson normalizer;
  OrderedJson steps;  ///< Of the pre-tokenizer.
  bool whole_pieces_first = false;
};

/// The settings that the published tokenizers of these families have.
std::optional<Splitting> splitting_of(std::string_view pre) {
  constexpr std::string_view kLlama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kQwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (pre == "gpt-2")
    return Splitting{nullptr, OrderedJson::array({byte_level(true)})};
  if (pre == "smollm") {
    const OrderedJson digits = {{"type", "Digits"}, {"individual_digits", true}};
    return Splitting{nullptr, OrderedJson::array({digits, byte_level(true)})};
  }
  if (pre == "llama-bpe")
    return Splitting{nullptr, OrderedJson::array({split_by(kLlama3), byte_level(false)}), true};
  if (pre == "qwen2")
    return Splitting{{{"type", "NFC"}}, OrderedJson::array({split_by(kQwen2), byte_level(false)})};
  return std::nullopt;
}

bool is_utf8(const std::string& text) {
  try {
    std::ignore = OrderedJson(text).dump();
    return true;
  } catch (const OrderedJson::exception&) {
    return false;
  }
}

/// The texts of a key that must exist.
Result<const std::vector<std::string>*> texts(const GgufFile& file, const std::string& key) {
  TEMPER_TRY(const auto* const list, file.find<std::vector<std::string>>(key));
  if (list == nullptr)
    return corrupt(fmt::format("key '{}': missing; the tokenizer needs it", key));
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (!is_utf8((*list)[i]))
      return corrupt(fmt::format("key '{}': element {} is not UTF-8", key, i));
  }
  return list;
}

struct TokenIds {
  OrderedJson ids = OrderedJson::object();
  OrderedJson added = OrderedJson::array();
};

Result<TokenIds> token_ids_of(const std::vector<std::string>& tokens,
                              const std::vector<std::int64_t>* kinds) {
  const std::string key = key_of("token_type");
  if (kinds != nullptr && kinds->size() != tokens.size()) {
    return corrupt(fmt::format("key '{}': expected {} elements, one for each token, found {}",
                               key,
                               tokens.size(),
                               kinds->size()));
  }
  std::map<std::string_view, std::size_t> first;
  OrderedJson::object_t ids;
  ids.reserve(tokens.size());
  TokenIds out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t kind = kinds != nullptr ? (*kinds)[i] : 1;
    if (kind == kUnusedKind)
      continue;
    if (const auto [at, is_new] = first.emplace(tokens[i], i); !is_new) {
      return corrupt(fmt::format(
          "key '{}': tokens {} and {} have the same text", key_of("tokens"), at->second, i));
    }
    // The map's own emplace() searches all entries.
    static_cast<OrderedJson::object_t::Container&>(ids).emplace_back(tokens[i], i);
    if (kind != kControlKind && kind != kUserDefinedKind)
      continue;
    out.added.push_back({{"id", i},
                         {"content", tokens[i]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", kind == kControlKind}});
  }
  out.ids = std::move(ids);
  return out;
}

/// The id under a key; empty if the key is missing. Error Corrupt: it is not a token.
Result<std::optional<std::int32_t>> token_at(const GgufFile& file,
                                             const std::string& key,
                                             std::size_t tokens) {
  TEMPER_TRY(const auto* const id, file.find<std::int64_t>(key));
  if (id == nullptr)
    return std::optional<std::int32_t>();
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= tokens) {
    return corrupt(
        fmt::format("key '{}': expected one of the {} tokens, found {}", key, tokens, *id));
  }
  return std::optional(static_cast<std::int32_t>(*id));
}

Result<std::string> tokenizer_config_of(const GgufFile& file,
                                        const std::vector<std::string>& tokens) {
  OrderedJson out = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"clean_up_tokenization_spaces", false}};
  using Pair = std::pair<const char*, const char*>;
  constexpr std::array<Pair, 4> kTokens{{{"bos_token", "bos_token_id"},
                                         {"eos_token", "eos_token_id"},
                                         {"pad_token", "padding_token_id"},
                                         {"unk_token", "unknown_token_id"}}};
  for (const auto& [name, key] : kTokens) {
    TEMPER_TRY(const auto id, token_at(file, key_of(key), tokens.size()));
    if (id)
      out[name] = tokens[static_cast<std::size_t>(*id)];
  }
  TEMPER_TRY(const bool* const bos, file.find<bool>(key_of("add_bos_token")));
  if (bos != nullptr)
    out["add_bos_token"] = *bos;
  constexpr std::string_view kTemplate = "tokenizer.chat_template";
  TEMPER_TRY(const std::string* const chat, file.find<std::string>(kTemplate));
  if (chat != nullptr && !is_utf8(*chat))
    return corrupt(fmt::format("key '{}': not UTF-8", kTemplate));
  if (chat != nullptr)
    out["chat_template"] = *chat;
  return out.dump(2) + "\n";
}

Result<std::string> tokenizer_json_of(const GgufFile& file,
                                      const Splitting& splitting,
                                      const std::vector<std::string>& tokens) {
  TEMPER_TRY(const auto* const merges, texts(file, key_of("merges")));
  TEMPER_TRY(const auto* const kinds, file.find<std::vector<std::int64_t>>(key_of("token_type")));
  TEMPER_TRY(TokenIds vocabulary, token_ids_of(tokens, kinds));
  OrderedJson steps = splitting.steps.size() == 1
                          ? splitting.steps.front()
                          : OrderedJson({{"type", "Sequence"}, {"pretokenizers", splitting.steps}});
  OrderedJson out = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", std::move(vocabulary.added)},
                     {"normalizer", splitting.normalizer},
                     {"pre_tokenizer", std::move(steps)},
                     {"post_processor", nullptr},
                     {"decoder", byte_level(true)}};
  out["model"] = {{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", nullptr},
                  {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr},
                  {"fuse_unk", false},
                  {"byte_fallback", false},
                  {"ignore_merges", splitting.whole_pieces_first}};
  out["model"]["vocab"] = std::move(vocabulary.ids);
  out["model"]["merges"] = *merges;
  return out.dump(1) + "\n";
}

/// The value of a key; an empty text if it is missing.
Result<std::string> text_at(const GgufFile& file, const std::string& key) {
  TEMPER_TRY(const std::string* const text, file.find<std::string>(key));
  return text == nullptr ? std::string() : *text;
}

}  // namespace

Result<GgufTokenizer> read_gguf_tokenizer(const GgufFile& file) {
  TEMPER_TRY(const std::string model, text_at(file, key_of("model")));
  TEMPER_TRY(const auto* const tokens, file.find<std::vector<std::string>>(key_of("tokens")));
  GgufTokenizer out;
  for (const char* const name : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    TEMPER_TRY(const auto id, token_at(file, key_of(name), tokens == nullptr ? 0 : tokens->size()));
    if (id && std::ranges::find(out.end_tokens, *id) == out.end_tokens.end())
      out.end_tokens.push_back(*id);
  }
  TEMPER_TRY(const bool* const placeholders, file.find<bool>(kGgufPlaceholderTokens));
  if (model.empty() || (placeholders != nullptr && *placeholders))
    return out;
  if (model != "gpt2") {
    return Error{ErrorCode::Unsupported,
                 fmt::format("key '{}': expected gpt2 (byte-level BPE), found {}; use the model's "
                             "Hugging Face folder",
                             key_of("model"),
                             model)};
  }
  TEMPER_TRY(const std::string pre, text_at(file, key_of("pre")));
  const auto splitting = splitting_of(pre);
  if (!splitting) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("key '{}': expected one of gpt-2, smollm, llama-bpe, qwen2, found "
                             "{}; use the model's Hugging Face folder",
                             key_of("pre"),
                             pre.empty() ? "none" : pre)};
  }
  TEMPER_TRY(const auto* const valid, texts(file, key_of("tokens")));
  TEMPER_TRY(out.files["tokenizer.json"], tokenizer_json_of(file, *splitting, *valid));
  TEMPER_TRY(out.files["tokenizer_config.json"], tokenizer_config_of(file, *valid));
  return out;
}

}  // namespace temper::actors
