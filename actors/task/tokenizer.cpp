#include "actors/task/tokenizer.hpp"

#include <fmt/format.h>

namespace temper::actors {
namespace {

constexpr std::string_view kAdditionAlphabet = "0123456789+=";
constexpr TokenId kFirstSymbol = 2;  // After pad and end.
constexpr std::int32_t kByteValues = 256;

}  // namespace

Tokenizer Tokenizer::for_task(const TaskConfig& task) {
  const bool characters =
      task.tokenizer == TokenizerKind::Characters ||
      (task.tokenizer == TokenizerKind::Auto && task.kind == TaskKind::Addition);
  return Tokenizer(characters ? std::string(kAdditionAlphabet) : std::string());
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  tokens.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (alphabet_.empty()) {
      tokens.push_back(kFirstSymbol + byte);
      continue;
    }
    const std::size_t symbol = alphabet_.find(text[i]);
    if (symbol == std::string::npos) {
      const bool printable = byte >= 0x20 && byte < 0x7f;
      return invalid_input(
          fmt::format("{} at position {} is not in the alphabet \"{}\"",
                      printable ? fmt::format("'{}'", text[i]) : fmt::format("byte 0x{:02x}", byte),
                      i,
                      alphabet_));
    }
    tokens.push_back(kFirstSymbol + static_cast<TokenId>(symbol));
  }
  return tokens;
}

std::string Tokenizer::decode(const std::vector<TokenId>& tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const TokenId token : tokens) {
    if (token == end())
      break;
    if (token < kFirstSymbol || token >= vocabulary())
      continue;
    const auto symbol = static_cast<std::size_t>(token - kFirstSymbol);
    text += alphabet_.empty() ? static_cast<char>(symbol) : alphabet_[symbol];
  }
  return text;
}

TokenId Tokenizer::first() const {
  return kFirstSymbol;
}

std::int32_t Tokenizer::vocabulary() const {
  return kFirstSymbol + (alphabet_.empty() ? kByteValues : static_cast<int>(alphabet_.size()));
}

}  // namespace temper::actors
