#include "actors/byte_pair/byte_pair_model.hpp"

#include "actors/byte_pair/unicode.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::actors {
namespace {

using nlohmann::json;

constexpr std::int32_t kMostTokens = 1 << 24;

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

}  // namespace

Result<std::int32_t> parse_token_id(const json& value, std::string_view token) {
  if (!value.is_number_unsigned() || value >= kMostTokens)
    return invalid_input(
        fmt::format("the id of \"{}\": expected an integer >= 0, found {}", token, value.dump()));
  return value.get<std::int32_t>();
}

Result<BytePairModel> BytePairModel::parse(const Section& model) {
  const Section vocabulary = model.at("vocab");
  const Section merges = model.at("merges");
  if (!vocabulary.value().is_object() || !merges.value().is_array())
    return Error{ErrorCode::Unsupported,
                 "`model` has no vocab and merges; Temper supports BPE only"};
  BytePairModel made;
  for (const auto& [text, value] : vocabulary.value().items()) {
    TEMPER_TRY(made.ids_[text], parse_token_id(value, text));
  }
  TEMPER_TRY_STATUS(made.read_settings(model));
  TEMPER_TRY_STATUS(made.read_merges(merges.value()));
  return made;
}

Status BytePairModel::read_settings(const Section& model) {
  if (const Section type = model.at("type"); !type.is_null() && type.value() != "BPE")
    return type.unsupported();
  for (const auto& [key, value] : model.value().items()) {
    constexpr std::array kKnown{
        "type", "vocab", "merges", "ignore_merges", "unk_token", "fuse_unk", "byte_fallback"};
    const bool known = std::ranges::find(kKnown, key) != kKnown.end();
    const bool off = value.is_null() || value == false || value == "";
    if (!known && !off)
      return model.at(key).unsupported();
  }
  TEMPER_TRY(whole_pieces_first_, model.flag("ignore_merges", false));
  TEMPER_TRY(fuses_unknown_, model.flag("fuse_unk", false));
  TEMPER_TRY(const bool byte_fallback, model.flag("byte_fallback", false));
  const auto find = [&](const std::string& text) {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  };
  for (std::size_t byte = 0; byte_fallback && byte < byte_ids_.size(); ++byte)
    byte_ids_[byte] = find(fmt::format("<0x{:02X}>", byte));
  if (!model.at("unk_token").is_null()) {
    TEMPER_TRY(const std::string unknown, model.text("unk_token"));
    unknown_ = find(unknown);
  }
  return {};
}

Status BytePairModel::read_merges(const json& merges) {
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto pair = pair_of(merges[i]);
    if (!pair)
      return invalid_input(
          fmt::format("merge {}: expected a pair of tokens, found {}", i, merges[i].dump()));
    const auto left = ids_.find(pair->first);
    const auto right = ids_.find(pair->second);
    const auto joined = ids_.find(pair->first + pair->second);
    if (left == ids_.end() || right == ids_.end() || joined == ids_.end()) {
      return invalid_input(
          fmt::format("merge {}: the tokens of {} are not in the vocabulary", i, merges[i].dump()));
    }
    merges_.add(left->second, right->second, joined->second);
  }
  return {};
}

Status BytePairModel::encode(const std::string& piece, std::vector<std::int32_t>& out) const {
  if (whole_pieces_first_) {
    if (const auto whole = ids_.find(piece); whole != ids_.end()) {
      out.push_back(whole->second);
      return {};
    }
  }
  TEMPER_TRY(const std::vector<std::int32_t> symbols, symbols_of(piece));
  const auto joined = merges_.apply(symbols);
  out.insert(out.end(), joined.begin(), joined.end());
  return {};
}

/// Returns false, and adds nothing, if not all bytes of the character have tokens.
bool BytePairModel::add_bytes(std::string_view character,
                              std::vector<std::int32_t>& symbols) const {
  const auto id_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (!std::ranges::all_of(character, [&](char c) { return id_of(c).has_value(); }))
    return false;
  for (const char c : character)
    symbols.push_back(*id_of(c));
  return true;
}

Result<std::vector<std::int32_t>> BytePairModel::symbols_of(const std::string& piece) const {
  std::vector<std::int32_t> symbols;
  symbols.reserve(piece.size());
  // An unknown character waits for the next character that is not replaced by bytes, as in the
  // library: it comes after the bytes of the characters between.
  bool waits = false;
  const auto add_unknown = [&] {
    if (waits)
      symbols.push_back(*unknown_);
    waits = false;
  };
  for (std::string_view rest = piece; !rest.empty();) {
    const std::string_view character = first_character(rest);
    rest.remove_prefix(character.size());
    if (const auto known = ids_.find(std::string(character)); known != ids_.end()) {
      add_unknown();
      symbols.push_back(known->second);
      continue;
    }
    if (add_bytes(character, symbols))
      continue;
    if (!unknown_) {
      return invalid_input(fmt::format(
          "'{}' is not in the tokenizer's vocabulary, which has no token for unknown characters",
          character));
    }
    if (!fuses_unknown_)
      add_unknown();
    waits = true;
  }
  add_unknown();
  return symbols;
}

}  // namespace temper::actors
