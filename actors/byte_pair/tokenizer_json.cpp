#include "actors/byte_pair/tokenizer_json.hpp"

#include "actors/byte_pair/byte_characters.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

namespace temper::actors {
namespace {

using nlohmann::json;

Result<AddedToken> added_token(const json& value) {
  const Section section(value, "added_tokens");
  AddedToken token;
  TEMPER_TRY(token.text, section.text("content"));
  const Section named(value, fmt::format("added token \"{}\"", token.text));
  TEMPER_TRY(token.id, parse_token_id(named.at("id").value(), token.text));
  TEMPER_TRY(token.special, named.flag("special", false));
  TEMPER_TRY(token.normalized, named.flag("normalized", false));
  TEMPER_TRY(token.lstrip, named.flag("lstrip", false));
  TEMPER_TRY(token.rstrip, named.flag("rstrip", false));
  TEMPER_TRY(const bool single_word, named.flag("single_word", false));
  if (single_word)
    return named.at("single_word").unsupported();
  return token;
}

}  // namespace

Result<TokenizerJson> parse_tokenizer_json(std::string_view text) {
  const json object = parse_json(text);
  if (!object.is_object())
    return invalid_input("expected a JSON object");
  const auto section = [&](const char* key) {
    static const json none;
    const auto found = object.find(key);
    return Section(found == object.end() ? none : *found, key);
  };
  TokenizerJson out;
  TEMPER_TRY(out.normalizer, Normalizer::parse(section("normalizer")));
  TEMPER_TRY(out.pre_tokenizer, PreTokenizer::parse(section("pre_tokenizer")));
  TEMPER_TRY(out.decoder, Decoder::parse(section("decoder")));
  if (out.pre_tokenizer.to_bytes() != out.decoder.from_bytes()) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("`pre_tokenizer` and `decoder`: expected ByteLevel in both or in "
                             "neither, found it in {} only",
                             out.decoder.from_bytes() ? "`decoder`" : "`pre_tokenizer`")};
  }
  TEMPER_TRY(out.model, BytePairModel::parse(section("model")));
  for (const json& value : section("added_tokens").value()) {
    TEMPER_TRY(AddedToken token, added_token(value));
    out.added.push_back(std::move(token));
  }
  return out;
}

std::string byte_level_tokenizer_json(const std::vector<std::string>& special,
                                      std::string_view bytes) {
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
  for (const char& byte : bytes)
    vocab[to_byte_characters({&byte, 1})] = vocab.size();
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
