#include "actors/byte_pair/byte_pair_tokenizer.hpp"

#include "core/files.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::actors {

BytePairTokenizer::BytePairTokenizer(TokenizerJson file)
    : file_(std::move(file)), special_(file_.bytes.size()) {
  for (std::size_t i = 0; i < file_.added.size(); ++i) {
    const AddedToken& token = file_.added[i];
    special_[static_cast<std::size_t>(token.id)] = token.special;
    added_by_byte_[static_cast<unsigned char>(token.text.front())].push_back(i);
  }
  for (auto& candidates : added_by_byte_) {
    std::ranges::stable_sort(
        candidates, std::greater<>(), [&](std::size_t i) { return file_.added[i].text.size(); });
  }
}

Result<BytePairTokenizer> BytePairTokenizer::parse(std::string_view text) {
  TEMPER_TRY(TokenizerJson file, parse_tokenizer_json(text));
  return BytePairTokenizer(std::move(file));
}

Result<BytePairTokenizer> BytePairTokenizer::open(const std::filesystem::path& tokenizer_json) {
  TEMPER_TRY(const std::string text, read_file(tokenizer_json));
  auto made = parse(text);
  if (!made)
    return std::move(made).error().within(tokenizer_json.string());
  return made;
}

/// The longest added token at the start of the text; null if there is none.
const AddedToken* BytePairTokenizer::added_at(std::string_view text) const {
  for (const std::size_t i : added_by_byte_[static_cast<unsigned char>(text.front())]) {
    if (text.starts_with(file_.added[i].text))
      return &file_.added[i];
  }
  return nullptr;
}

Result<std::vector<std::int32_t>> BytePairTokenizer::encode(std::string_view text) const {
  TEMPER_TRY_STATUS(check_utf8(text));
  std::vector<std::int32_t> out;
  std::size_t plain = 0;  // Start of the text after the last added token.
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* const added = added_at(text.substr(at));
    if (added == nullptr) {
      ++at;
      continue;
    }
    TEMPER_TRY_STATUS(encode_plain(text.substr(plain, at - plain), out));
    out.push_back(added->id);
    at += added->text.size();
    plain = at;
  }
  TEMPER_TRY_STATUS(encode_plain(text.substr(plain), out));
  return out;
}

Status BytePairTokenizer::encode_plain(std::string_view text,
                                       std::vector<std::int32_t>& out) const {
  if (text.empty())
    return {};
  TEMPER_TRY(const auto pieces, file_.pre_tokenizer.pieces(text));
  for (const std::string& piece : pieces)
    TEMPER_TRY_STATUS(encode_piece(piece, out));
  return {};
}

Status BytePairTokenizer::encode_piece(const std::string& piece,
                                       std::vector<std::int32_t>& out) const {
  if (file_.whole_pieces_first) {
    if (const auto whole = file_.ids.find(piece); whole != file_.ids.end()) {
      out.push_back(whole->second);
      return {};
    }
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(piece.size());
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (file_.byte_ids[byte] < 0)
      return invalid_input(
          fmt::format("\"{}\": byte 0x{:02x} is not in the tokenizer's vocabulary", piece, byte));
    symbols.push_back(file_.byte_ids[byte]);
  }
  const auto joined = file_.merges.apply(symbols);
  out.insert(out.end(), joined.begin(), joined.end());
  return {};
}

std::string BytePairTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string bytes;
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < size() && !special_[static_cast<std::size_t>(token)])
      bytes += file_.bytes[static_cast<std::size_t>(token)];
  }
  return to_valid_utf8(bytes);
}

}  // namespace temper::actors
