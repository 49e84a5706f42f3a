#include "actors/byte_pair/tokenizer_json.hpp"

#include "core/json_document.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace temper::actors {
namespace {

using nlohmann::json;

constexpr std::int32_t kMostTokens = 1 << 24;

Error unsupported(std::string what) {
  return Error{ErrorCode::Unsupported, std::move(what)};
}

/// The 256 characters with which the files represent bytes: printable Latin-1 characters as
/// themselves, the others from U+0100 on, in order (as in GPT-2).
std::array<char16_t, 256> byte_characters() {
  std::array<char16_t, 256> out{};
  char16_t next = 0x100;
  for (std::size_t byte = 0; byte < out.size(); ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
                           (byte >= 0xae && byte <= 0xff);
    out[byte] = printable ? static_cast<char16_t>(byte) : next++;
  }
  return out;
}

class ByteCharacters {
 public:
  ByteCharacters() {
    const auto characters = byte_characters();
    for (std::size_t byte = 0; byte < characters.size(); ++byte)
      bytes_[characters[byte]] = static_cast<char>(byte);
  }
  /// The bytes that such characters represent; a text with any other character represents itself.
  std::string decode(const std::string& text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto lead = static_cast<unsigned char>(text[i]);
      char16_t character = lead;
      if (lead >= 0x80) {  // All of them take one or two bytes.
        if (lead >= 0xe0 || i + 1 == text.size())
          return text;
        character = static_cast<char16_t>((lead & 0x1fU) << 6 |
                                          (static_cast<unsigned char>(text[++i]) & 0x3fU));
      }
      const auto byte = bytes_.find(character);
      if (byte == bytes_.end())
        return text;
      out += byte->second;
    }
    return out;
  }

 private:
  std::unordered_map<char16_t, char> bytes_;
};

const json& section(const json& object, const char* key) {
  static const json none;
  const auto at = object.find(key);
  return at == object.end() ? none : *at;
}

Result<std::int32_t> token_id(const json& value, std::string_view of) {
  if (!value.is_number_unsigned() || value >= kMostTokens)
    return invalid_input(
        fmt::format("the id of \"{}\": expected an integer >= 0, found {}", of, value.dump()));
  return value.get<std::int32_t>();
}

Status check_model(const json& model) {
  if (!model.is_object() || !model.contains("vocab") || !model["vocab"].is_object() ||
      !model.contains("merges") || !model["merges"].is_array())
    return unsupported("`model` has no vocab and merges; Temper supports byte-level BPE only");
  if (const json& type = section(model, "type"); !type.is_null() && type != "BPE")
    return unsupported(
        fmt::format("`model.type` is {}, which Temper does not support", type.dump()));
  for (const auto& [key, value] : model.items()) {
    const bool says_nothing = key == "type" || key == "vocab" || key == "merges" ||
                              key == "ignore_merges" || key == "unk_token" || key == "fuse_unk";
    const bool off = value.is_null() || value == false || value == "";
    if (!says_nothing && !off)
      return unsupported(
          fmt::format("`model.{}` is {}, which Temper does not support", key, value.dump()));
  }
  return {};
}

/// "a b", or ["a", "b"].
std::optional<std::pair<std::string, std::string>> pair_of(const json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  if (!merge.is_string())
    return std::nullopt;
  const auto text = merge.get<std::string>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos)
    return std::nullopt;
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

void put(std::vector<std::string>& bytes, std::int32_t id, std::string text) {
  const auto at = static_cast<std::size_t>(id);
  if (bytes.size() <= at)
    bytes.resize(at + 1);
  bytes[at] = std::move(text);
}

Status read_model(const json& model, TokenizerJson& out) {
  TEMPER_TRY_STATUS(check_model(model));
  const ByteCharacters characters;
  std::unordered_map<std::string, std::int32_t> by_text;
  out.byte_ids.fill(-1);
  for (const auto& [text, value] : model["vocab"].items()) {
    TEMPER_TRY(const std::int32_t id, token_id(value, text));
    by_text[text] = id;
    const std::string bytes = characters.decode(text);
    if (bytes.size() == 1)
      out.byte_ids[static_cast<unsigned char>(bytes.front())] = id;
    out.ids[bytes] = id;
    put(out.bytes, id, bytes);
  }
  const json& merges = model["merges"];
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto pair = pair_of(merges[i]);
    if (!pair)
      return invalid_input(
          fmt::format("merge {}: expected a pair of tokens, found {}", i, merges[i].dump()));
    const auto left = by_text.find(pair->first);
    const auto right = by_text.find(pair->second);
    const auto joined = by_text.find(pair->first + pair->second);
    if (left == by_text.end() || right == by_text.end() || joined == by_text.end()) {
      return invalid_input(
          fmt::format("merge {}: the tokens of {} are not in the vocabulary", i, merges[i].dump()));
    }
    out.merges.add(left->second, right->second, joined->second);
  }
  out.whole_pieces_first = section(model, "ignore_merges") == true;
  return {};
}

Status read_added(const json& list, TokenizerJson& out) {
  for (const json& token : list) {
    if (!token.is_object() || !section(token, "content").is_string() ||
        section(token, "content") == "")
      return invalid_input(fmt::format("added token {} has no content", token.dump()));
    AddedToken added;
    added.text = token["content"].get<std::string>();
    TEMPER_TRY(added.id, token_id(section(token, "id"), added.text));
    added.special = section(token, "special") == true;
    for (const char* const key : {"single_word", "lstrip", "rstrip"}) {
      if (section(token, key) == true)
        return unsupported(fmt::format(
            "added token \"{}\": `{}` is true, which Temper does not support", added.text, key));
    }
    put(out.bytes, added.id, added.text);
    out.added.push_back(std::move(added));
  }
  return {};
}

}  // namespace

Result<TokenizerJson> parse_tokenizer_json(std::string_view text) {
  const json object = parse_json(text);
  if (!object.is_object())
    return invalid_input("expected a JSON object");
  TEMPER_TRY(PreTokenizer pre_tokenizer,
             PreTokenizer::parse(section(object, "normalizer"), section(object, "pre_tokenizer")));
  const json& decoder = section(object, "decoder");
  if (!decoder.is_object() || section(decoder, "type") != "ByteLevel")
    return unsupported(
        fmt::format("`decoder` is {}; Temper supports ByteLevel only", decoder.dump()));
  TokenizerJson out{std::move(pre_tokenizer), {}, {}, {}, {}, {}, false};
  TEMPER_TRY_STATUS(read_model(section(object, "model"), out));
  TEMPER_TRY_STATUS(read_added(section(object, "added_tokens"), out));
  return out;
}

std::string byte_level_tokenizer_json(const std::vector<std::string>& special,
                                      std::string_view bytes) {
  const auto characters = byte_characters();
  nlohmann::ordered_json added = nlohmann::ordered_json::array();
  nlohmann::ordered_json vocab = nlohmann::ordered_json::object();
  for (const std::string& text : special) {
    added.push_back({{"id", vocab.size()},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
    vocab[text] = vocab.size();
  }
  for (const char byte : bytes) {
    const char16_t c = characters[static_cast<unsigned char>(byte)];
    std::string text;
    if (c >= 0x80)
      text += static_cast<char>(0xc0 | c >> 6);
    text += static_cast<char>(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    vocab[text] = vocab.size();
  }
  const nlohmann::ordered_json byte_level = {{"type", "ByteLevel"},
                                             {"add_prefix_space", false},
                                             {"trim_offsets", true},
                                             {"use_regex", false}};
  nlohmann::ordered_json out = {{"version", "1.0"},
                                {"truncation", nullptr},
                                {"padding", nullptr},
                                {"added_tokens", added},
                                {"normalizer", nullptr},
                                {"pre_tokenizer", byte_level},
                                {"post_processor", nullptr},
                                {"decoder", byte_level},
                                {"model",
                                 {{"type", "BPE"},
                                  {"dropout", nullptr},
                                  {"unk_token", nullptr},
                                  {"continuing_subword_prefix", nullptr},
                                  {"end_of_word_suffix", nullptr},
                                  {"fuse_unk", false},
                                  {"byte_fallback", false},
                                  {"ignore_merges", false},
                                  {"vocab", vocab},
                                  {"merges", nlohmann::ordered_json::array()}}}};
  return out.dump(2) + "\n";
}

}  // namespace temper::actors
