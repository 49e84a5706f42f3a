#include "actors/byte_pair/pre_tokenizer.hpp"

#include "actors/byte_pair/byte_characters.hpp"
#include "core/json_document.hpp"

#include <cctype>
#include <iterator>

namespace temper::actors {
namespace {

/// The expression of GPT-2, which ByteLevel with `use_regex` uses.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A regular expression that matches exactly this text.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<signed char>(c) >= 0 && !std::isalnum(static_cast<unsigned char>(c)))
      out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::parse(const Section& section) {
  PreTokenizer made;
  for (const Section& step : section.steps("pretokenizers"))
    TEMPER_TRY_STATUS(made.add(step));
  return made;
}

Status PreTokenizer::add(const Section& step) {
  const std::string type = step.type();
  if (to_bytes_)
    return step.unsupported();
  if (type == "ByteLevel")
    return add_byte_level(step);
  if (type == "Metaspace" && !metaspace_ && splits_.empty())
    return add_metaspace(step);
  if (type == "Split")
    return add_split(step);
  if (type != "Digits")
    return step.unsupported();
  TEMPER_TRY(const bool individual, step.flag("individual_digits", false));
  return cut(individual ? R"(\p{N})" : R"(\p{N}+)", TextCut::Around);
}

Status PreTokenizer::add_byte_level(const Section& step) {
  TEMPER_TRY(const bool prefix, step.flag("add_prefix_space", true));
  if (prefix)
    return step.at("add_prefix_space").expected("false");
  TEMPER_TRY(const bool splits, step.flag("use_regex", true));
  to_bytes_ = true;
  return splits ? cut(kGpt2, TextCut::Around) : Status();
}

Status PreTokenizer::add_split(const Section& step) {
  TEMPER_TRY(const bool invert, step.flag("invert", false));
  const auto& behavior = step.at("behavior").value();
  if (invert || (behavior != "Isolated" && behavior != "MergedWithPrevious"))
    return step.unsupported();
  const TextCut where = behavior == "Isolated" ? TextCut::Around : TextCut::After;
  const Section pattern = step.at("pattern");
  if (pattern.at("Regex").is_null()) {
    TEMPER_TRY(const std::string text, pattern.text("String"));
    return cut(literal(text), where);
  }
  TEMPER_TRY(const std::string regex, pattern.text("Regex"));
  return cut(regex, where);
}

Status PreTokenizer::add_metaspace(const Section& step) {
  TEMPER_TRY(Metaspace metaspace, Metaspace::parse(step));
  const std::string space = literal(metaspace.replacement());
  const bool splits = metaspace.splits();
  metaspace_ = std::move(metaspace);
  return splits ? cut(space, TextCut::Before) : Status();
}

Status PreTokenizer::cut(std::string_view regex, TextCut cut) {
  TEMPER_TRY(TextPattern pattern, TextPattern::compile(regex));
  splits_.push_back({std::move(pattern), cut});
  return {};
}

Result<std::vector<std::string>> PreTokenizer::pieces(std::string_view text,
                                                      TextPlace place) const {
  std::vector<std::string> pieces{metaspace_ ? metaspace_->encode(text, place) : std::string(text)};
  for (const auto& [pattern, cut] : splits_) {
    std::vector<std::string> finer;
    for (const std::string& piece : pieces) {
      TEMPER_TRY(auto parts, pattern.split(piece, cut));
      std::move(parts.begin(), parts.end(), std::back_inserter(finer));
    }
    pieces = std::move(finer);
  }
  for (std::string& piece : pieces) {
    if (to_bytes_)
      piece = to_byte_characters(piece);
  }
  return pieces;
}

}  // namespace temper::actors
