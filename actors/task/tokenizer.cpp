#include "actors/task/tokenizer.hpp"

#include "actors/byte_pair/byte_pair_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace temper::actors {
namespace {

constexpr std::string_view kAdditionAlphabet = "0123456789+=";
constexpr TokenId kFirstSymbol = 2;  // After pad and end.
constexpr std::int32_t kByteValues = 256;

}  // namespace

Tokenizer::Tokenizer(std::string alphabet)
    : alphabet_(std::move(alphabet)),
      vocabulary_(kFirstSymbol +
                  (alphabet_.empty() ? kByteValues : static_cast<std::int32_t>(alphabet_.size()))) {
}

Tokenizer Tokenizer::for_task(const TaskConfig& task) {
  const bool characters =
      task.tokenizer == TokenizerKind::Characters ||
      (task.tokenizer == TokenizerKind::Auto && task.kind == TaskKind::Addition);
  return Tokenizer(characters ? std::string(kAdditionAlphabet) : std::string());
}

Result<Tokenizer> Tokenizer::of_model(const TaskConfig& task, const ModelTokens& model) {
  Tokenizer made = for_task(task);
  if (model.size < made.vocabulary() && task.tokenizer != TokenizerKind::Auto) {
    return invalid_input(
        fmt::format("task.tokenizer: `{}` has {} tokens, but the model has only {}",
                    name_of(task.tokenizer),
                    made.vocabulary(),
                    model.size));
  }
  made.vocabulary_ = model.size;
  if (!model.ends.empty())
    made.ends_ = model.ends;
  if (task.tokenizer != TokenizerKind::Auto)
    return made;
  if (model.ends.empty()) {
    return invalid_input(
        fmt::format("{}: neither generation_config.json nor config.json has an eos_token_id; list "
                    "the end-of-response tokens in model.end_tokens",
                    model.folder.string()));
  }
  const std::filesystem::path file = model.folder / "tokenizer.json";
  std::error_code ignored;
  made.kind_ = Kind::IdsOnly;
  if (!std::filesystem::exists(file, ignored))
    return made;
  auto byte_pair = BytePairTokenizer::open(file);
  if (!byte_pair && byte_pair.error().code == ErrorCode::Unsupported) {
    return Error{ErrorCode::Unsupported,
                 byte_pair.error().context +
                     "; to train on token ids, use a copy of the folder without this file, rows "
                     "with `prompt_token_ids` (python -m temper.data --tokens), and a Python "
                     "reward that reads completion_ids"};
  }
  if (!byte_pair)
    return std::move(byte_pair).error();
  if (byte_pair->size() > model.size) {
    return invalid_input(fmt::format("{} has {} tokens, more than the model's vocab_size {}",
                                     file.string(),
                                     byte_pair->size(),
                                     model.size));
  }
  made.kind_ = Kind::BytePair;
  made.byte_pair_ = std::make_shared<const BytePairTokenizer>(*std::move(byte_pair));
  return made;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text) const {
  if (kind_ == Kind::BytePair)
    return byte_pair_->encode(text);
  if (kind_ == Kind::IdsOnly) {
    return invalid_input(
        "the model folder has no tokenizer.json, so each row of the task needs "
        "`prompt_token_ids`");
  }
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
  const auto end = std::ranges::find_if(
      tokens, [&](TokenId t) { return std::ranges::find(ends_, t) != ends_.end(); });
  const std::span<const TokenId> said(tokens.begin(), end);
  if (kind_ == Kind::BytePair)
    return byte_pair_->decode(said);
  std::string text;
  if (kind_ == Kind::IdsOnly)
    return text;
  const auto symbols = alphabet_.empty() ? static_cast<std::size_t>(kByteValues) : alphabet_.size();
  text.reserve(said.size());
  for (const TokenId token : said) {
    const auto symbol = static_cast<std::size_t>(token - kFirstSymbol);
    if (token < kFirstSymbol || symbol >= symbols)
      continue;
    text += alphabet_.empty() ? static_cast<char>(symbol) : alphabet_[symbol];
  }
  return text;
}

TokenId Tokenizer::first() const {
  return kFirstSymbol;
}

std::string tokenizer_json_of(const Tokenizer& tokenizer) {
  std::string symbols = tokenizer.alphabet();
  for (int byte = 0; symbols.size() < kByteValues && tokenizer.alphabet().empty(); ++byte)
    symbols += static_cast<char>(byte);
  return byte_level_tokenizer_json({"<pad>", "<end>"}, symbols);
}

}  // namespace temper::actors
