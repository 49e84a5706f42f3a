#include "actors/model_folder/gguf_tokenizer.hpp"

#include "actors/model_folder/gguf_names.hpp"
#include "actors/model_folder/merges_by_score.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace temper::actors {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Kinds of tokens in GGUF.
constexpr std::int64_t kUnknownKind = 2, kControlKind = 3, kUserDefinedKind = 4, kUnusedKind = 5;

constexpr std::string_view kSentencePiece = "llama";
constexpr std::size_t kLongestPiece = 1024;  ///< SentencePiece makes none above 64 unless told.
constexpr std::string_view kSpaceMark = "\u2581";  ///< A space in a SentencePiece token.

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

OrderedJson replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
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

/// The tokens of a file, with their kinds if it has them.
struct Tokens {
  const std::vector<std::string>* texts = nullptr;
  const std::vector<std::int64_t>* kinds = nullptr;
  bool sentence_piece = false;

  std::int64_t kind(std::size_t id) const { return kinds != nullptr ? (*kinds)[id] : 1; }
  bool special(std::size_t id) const {
    return kind(id) == kControlKind || (sentence_piece && kind(id) == kUnknownKind);
  }
  bool added(std::size_t id) const { return special(id) || kind(id) == kUserDefinedKind; }
};

Result<Tokens> tokens_of(const GgufFile& file, bool sentence_piece) {
  Tokens out;
  out.sentence_piece = sentence_piece;
  TEMPER_TRY(out.texts, texts(file, key_of("tokens")));
  const std::string key = key_of("token_type");
  TEMPER_TRY(out.kinds, file.find<std::vector<std::int64_t>>(key));
  if (out.kinds != nullptr && out.kinds->size() != out.texts->size()) {
    return corrupt(fmt::format("key '{}': expected {} elements, one for each token, found {}",
                               key,
                               out.texts->size(),
                               out.kinds->size()));
  }
  return out;
}

struct TokenIds {
  OrderedJson ids = OrderedJson::object();
  OrderedJson added = OrderedJson::array();
};

Result<TokenIds> token_ids_of(const Tokens& tokens) {
  std::map<std::string_view, std::size_t> first;
  OrderedJson::object_t ids;
  ids.reserve(tokens.texts->size());
  TokenIds out;
  for (std::size_t i = 0; i < tokens.texts->size(); ++i) {
    const std::string& text = (*tokens.texts)[i];
    if (tokens.kind(i) == kUnusedKind)
      continue;
    if (const auto [at, is_new] = first.emplace(text, i); !is_new) {
      return corrupt(fmt::format(
          "key '{}': tokens {} and {} have the same text", key_of("tokens"), at->second, i));
    }
    // The map's own emplace() searches all entries.
    static_cast<OrderedJson::object_t::Container&>(ids).emplace_back(text, i);
    if (!tokens.added(i))
      continue;
    out.added.push_back({{"id", i},
                         {"content", text},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", tokens.special(i)}});
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

/// The value of a key; an empty text if it is missing.
Result<std::string> text_at(const GgufFile& file, const std::string& key) {
  TEMPER_TRY(const std::string* const text, file.find<std::string>(key));
  return text == nullptr ? std::string() : *text;
}

/// What tokenizer.json has beside the tokens.
struct Sections {  // NOLINT(bugprone-exception-escape): moving JSON does not throw
  OrderedJson normalizer, pre_tokenizer, decoder, merges, unknown;
  bool byte_tokens = false;  ///< Characters without a token become such as <0xE2>.
  bool whole_pieces_first = false;
};

Result<Sections> byte_level_sections(const GgufFile& file) {
  TEMPER_TRY(const std::string pre, text_at(file, key_of("pre")));
  auto splitting = splitting_of(pre);
  if (!splitting) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("key '{}': expected one of gpt-2, smollm, llama-bpe, qwen2, found "
                             "{}; use the model's Hugging Face folder",
                             key_of("pre"),
                             pre.empty() ? "none" : pre)};
  }
  Sections out;
  out.normalizer = std::move(splitting->normalizer);
  out.decoder = byte_level(true);
  out.whole_pieces_first = splitting->whole_pieces_first;
  out.pre_tokenizer =
      splitting->steps.size() == 1
          ? splitting->steps.front()
          : OrderedJson({{"type", "Sequence"}, {"pretokenizers", splitting->steps}});
  TEMPER_TRY(const auto* const merges, texts(file, key_of("merges")));
  out.merges = *merges;
  return out;
}

/// Error: the text is changed before it is encoded, which llama.cpp does not do with such a file.
Status check_normalization(const GgufFile& file) {
  const std::string spaces = key_of("remove_extra_whitespaces");
  TEMPER_TRY(const bool* const removes, file.find<bool>(spaces));
  const std::string characters = key_of("precompiled_charsmap");
  const bool changes_spaces = removes != nullptr && *removes;
  if (!changes_spaces && !file.keys().contains(characters))
    return {};
  return Error{ErrorCode::Unsupported,
               fmt::format("key '{}': Temper does not support this normalization; use the model's "
                           "Hugging Face folder",
                           changes_spaces ? spaces : characters)};
}

/// Those with which llama.cpp encodes: a space before each text between added tokens, and merges by
/// score.
Result<Sections> sentence_piece_sections(const GgufFile& file, const Tokens& tokens) {
  TEMPER_TRY_STATUS(check_normalization(file));
  const std::string key = key_of("scores");
  TEMPER_TRY(const auto* const scores, file.find<std::vector<double>>(key));
  if (scores == nullptr || scores->size() != tokens.texts->size()) {
    return corrupt(fmt::format("key '{}': expected {} elements, one for each token, found {}",
                               key,
                               tokens.texts->size(),
                               scores == nullptr ? 0 : scores->size()));
  }
  Sections out;
  out.byte_tokens = true;
  // No text between added tokens has one of them.
  std::vector<std::string_view> mergeable(tokens.texts->size());
  for (std::size_t i = 0; i < mergeable.size(); ++i) {
    if (!tokens.added(i) && tokens.kind(i) != kUnusedKind)
      mergeable[i] = (*tokens.texts)[i];
    if (mergeable[i].size() > kLongestPiece) {
      return Error{ErrorCode::Unsupported,
                   fmt::format("key '{}': token {}: expected at most {} bytes, found {}",
                               key_of("tokens"),
                               i,
                               kLongestPiece,
                               mergeable[i].size())};
    }
    if (tokens.kind(i) == kUnknownKind && out.unknown.is_null())
      out.unknown = (*tokens.texts)[i];
  }
  auto merges = merges_by_score(mergeable, *scores);
  if (!merges)
    return std::move(merges).error().within(fmt::format("key '{}'", key));
  out.merges = std::move(*merges);
  TEMPER_TRY(const bool* const prefix, file.find<bool>(key_of("add_space_prefix")));
  const bool prepends = prefix == nullptr || *prefix;
  OrderedJson normalizers = OrderedJson::array(), decoders = OrderedJson::array();
  if (prepends)
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  normalizers.push_back(replace(" ", kSpaceMark));
  decoders.push_back(replace(kSpaceMark, " "));
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prepends)
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  out.normalizer = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  out.decoder = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  return out;
}

Result<std::string> tokenizer_json_of(const GgufFile& file, const Tokens& tokens) {
  TEMPER_TRY(
      Sections sections,
      tokens.sentence_piece ? sentence_piece_sections(file, tokens) : byte_level_sections(file));
  TEMPER_TRY(TokenIds vocabulary, token_ids_of(tokens));
  OrderedJson out = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", std::move(vocabulary.added)},
                     {"normalizer", std::move(sections.normalizer)},
                     {"pre_tokenizer", std::move(sections.pre_tokenizer)},
                     {"post_processor", nullptr},
                     {"decoder", std::move(sections.decoder)}};
  out["model"] = {{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", std::move(sections.unknown)},
                  {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr},
                  {"fuse_unk", sections.byte_tokens},
                  {"byte_fallback", sections.byte_tokens},
                  {"ignore_merges", sections.whole_pieces_first}};
  out["model"]["vocab"] = std::move(vocabulary.ids);
  out["model"]["merges"] = std::move(sections.merges);
  return out.dump(1) + "\n";
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
  if (model != "gpt2" && model != kSentencePiece) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("key '{}': expected gpt2 (byte-level BPE) or llama (SentencePiece "
                             "BPE), found {}; use the model's Hugging Face folder",
                             key_of("model"),
                             model)};
  }
  TEMPER_TRY(const Tokens valid, tokens_of(file, model == kSentencePiece));
  TEMPER_TRY(out.files["tokenizer.json"], tokenizer_json_of(file, valid));
  TEMPER_TRY(out.files["tokenizer_config.json"], tokenizer_config_of(file, *valid.texts));
  return out;
}

}  // namespace temper::actors
