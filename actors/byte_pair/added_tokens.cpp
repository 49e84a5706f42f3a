#include "actors/byte_pair/added_tokens.hpp"

#include "actors/byte_pair/unicode.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace temper::actors {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  std::ranges::stable_sort(tokens, std::greater<>(), [](const AddedToken& token) {
    return std::pair(token.text.size(), token.special);
  });
  for (AddedToken& token : tokens) {
    if (!token.text.empty())
      by_first_byte_[static_cast<unsigned char>(token.text.front())].push_back(std::move(token));
  }
}

/// The longest added token at the start of the text; null if there is none.
const AddedToken* AddedTokens::token_at(std::string_view text) const {
  for (const AddedToken& token : by_first_byte_[static_cast<unsigned char>(text.front())]) {
    if (text.starts_with(token.text))
      return &token;
  }
  return nullptr;
}

std::vector<TextPart> AddedTokens::split(std::string_view text) const {
  std::vector<TextPart> parts;
  std::size_t plain = 0;  // Start of the text after the last added token.
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* const token = token_at(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    at += token->text.size();
    std::size_t end = at;
    // The token may be inside the white space that the token before it includes.
    if (token->lstrip)
      begin = std::max(plain, begin - trailing_space(text.substr(0, begin)));
    if (token->rstrip)
      end += leading_space(text.substr(end));
    if (plain < begin)
      parts.push_back({text.substr(plain, begin - plain), std::nullopt});
    if (begin < end)
      parts.push_back({text.substr(begin, end - begin), token->id});
    plain = end;
  }
  if (plain < text.size())
    parts.push_back({text.substr(plain), std::nullopt});
  return parts;
}

}  // namespace temper::actors
