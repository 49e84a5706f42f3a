#include "actors/byte_pair/byte_pair_tokenizer.hpp"

#include "actors/byte_pair/unicode.hpp"
#include "core/files.hpp"

#include <algorithm>

namespace temper::actors {
namespace {

/// The tokens that are found in the text as it is, or after the normalizer.
std::vector<AddedToken> tokens_in(std::vector<AddedToken> tokens,
                                  bool normalized,
                                  const Normalizer& normalizer) {
  std::erase_if(tokens, [&](const AddedToken& token) { return token.normalized != normalized; });
  for (AddedToken& token : tokens) {
    if (normalized)
      token.text = normalizer.apply(token.text);
  }
  return tokens;
}

}  // namespace

BytePairTokenizer::BytePairTokenizer(TokenizerJson file)
    : normalizer_(std::move(file.normalizer)),
      pre_tokenizer_(std::move(file.pre_tokenizer)),
      model_(std::move(file.model)),
      decoder_(std::move(file.decoder)),
      added_(tokens_in(file.added, false, normalizer_)),
      added_normalized_(tokens_in(file.added, true, normalizer_)) {
  for (const auto& [text, id] : model_.ids())
    set_text(id, text);
  for (const AddedToken& token : file.added)
    set_text(token.id, token.text);
  special_.resize(texts_.size());
  for (const AddedToken& token : file.added)
    special_[static_cast<std::size_t>(token.id)] = token.special;
}

void BytePairTokenizer::set_text(std::int32_t id, const std::string& text) {
  const auto at = static_cast<std::size_t>(id);
  if (texts_.size() <= at)
    texts_.resize(at + 1);
  texts_[at] = text;
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

Result<std::vector<std::int32_t>> BytePairTokenizer::encode(std::string_view text) const {
  TEMPER_TRY_STATUS(check_utf8(text));
  std::vector<std::int32_t> out;
  TextPlace place = TextPlace::Start;
  for (const TextPart& part : added_.split(text)) {
    if (part.token)
      out.push_back(*part.token);
    else
      TEMPER_TRY_STATUS(encode_normalized(normalizer_.apply(part.text), place, out));
    place = TextPlace::Later;
  }
  return out;
}

Status BytePairTokenizer::encode_normalized(std::string_view text,
                                            TextPlace place,
                                            std::vector<std::int32_t>& out) const {
  for (const TextPart& part : added_normalized_.split(text)) {
    if (part.token) {
      out.push_back(*part.token);
    } else {
      TEMPER_TRY(const auto pieces, pre_tokenizer_.pieces(part.text, place));
      for (const std::string& piece : pieces)
        TEMPER_TRY_STATUS(model_.encode(piece, out));
    }
    place = TextPlace::Later;
  }
  return {};
}

std::string BytePairTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::vector<std::string> texts;
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < size() && !special_[static_cast<std::size_t>(token)] &&
        !texts_[static_cast<std::size_t>(token)].empty())
      texts.push_back(texts_[static_cast<std::size_t>(token)]);
  }
  return decoder_.decode(std::move(texts));
}

}  // namespace temper::actors
