#include "actors/byte_pair/pre_tokenizer.hpp"

#include "core/json_document.hpp"

#include <fmt/format.h>

#include <iterator>

namespace temper::actors {
namespace {

using nlohmann::json;

/// The expression of GPT-2, which ByteLevel with `use_regex` uses.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string text_of(const json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

/// The boolean value of the key; `otherwise` if it is missing.
bool is_set(const json& object, const char* key, bool otherwise) {
  const auto at = object.find(key);
  return at == object.end() || !at->is_boolean() ? otherwise : at->get<bool>();
}

Error unsupported_value(const char* section, const json& value) {
  return Error{ErrorCode::Unsupported,
               fmt::format("`{}` is {}, which Temper does not support", section, value.dump())};
}

/// The steps of a sequence, or the single step.
std::vector<json> steps_of(const json& value, const char* list) {
  if (value.is_null())
    return {};
  if (text_of(value, "type") == "Sequence" && value.contains(list) && value[list].is_array())
    return value[list].get<std::vector<json>>();
  return {value};
}

}  // namespace

Result<PreTokenizer> PreTokenizer::parse(const json& normalizer, const json& pre_tokenizer) {
  PreTokenizer made;
  for (const json& step : steps_of(normalizer, "normalizers")) {
    if (text_of(step, "type") != "NFC")
      return unsupported_value("normalizer", step);
    made.compose_ = true;
  }
  for (const json& step : steps_of(pre_tokenizer, "pretokenizers"))
    TEMPER_TRY_STATUS(made.add(step));
  if (!made.to_bytes_)
    return Error{ErrorCode::Unsupported,
                 "`pre_tokenizer` has no ByteLevel; Temper supports byte-level BPE only"};
  return made;
}

Status PreTokenizer::add(const json& step) {
  const std::string type = text_of(step, "type");
  if (to_bytes_)
    return unsupported_value("pre_tokenizer", step);
  if (type == "ByteLevel") {
    if (is_set(step, "add_prefix_space", true))
      return unsupported_value("pre_tokenizer.add_prefix_space", true);
    to_bytes_ = true;
    if (!is_set(step, "use_regex", true))
      return {};
    TEMPER_TRY(TextPattern pattern, TextPattern::compile(kGpt2));
    splits_.push_back(std::move(pattern));
    return {};
  }
  if (type == "Digits") {
    TEMPER_TRY(
        TextPattern pattern,
        TextPattern::compile(is_set(step, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)"));
    splits_.push_back(std::move(pattern));
    return {};
  }
  const bool plain = type == "Split" && text_of(step, "behavior") == "Isolated" &&
                     !is_set(step, "invert", false) && step.contains("pattern");
  if (!plain)
    return unsupported_value("pre_tokenizer", step);
  std::string regex = text_of(step["pattern"], "Regex");
  if (regex.empty())
    regex = "\\Q" + text_of(step["pattern"], "String") + "\\E";
  TEMPER_TRY(TextPattern pattern, TextPattern::compile(regex));
  splits_.push_back(std::move(pattern));
  return {};
}

Result<std::vector<std::string>> PreTokenizer::pieces(std::string_view text) const {
  std::vector<std::string> pieces{compose_ ? compose(text) : std::string(text)};
  for (const TextPattern& pattern : splits_) {
    std::vector<std::string> finer;
    for (const std::string& piece : pieces) {
      TEMPER_TRY(auto parts, pattern.split(piece));
      std::move(parts.begin(), parts.end(), std::back_inserter(finer));
    }
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace temper::actors
