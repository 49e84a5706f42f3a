// Text to token ids and back: bytes (any text), characters (a fixed alphabet, for the built-in
// task; small vocabulary, so a tiny model is fast), or what a model folder has.
#pragma once

#include "actors/task/task_config.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

class BytePairTokenizer;

using TokenId = std::int32_t;

/// What a model says of its tokens.
struct ModelTokens {
  std::filesystem::path folder;  ///< With tokenizer.json, or without.
  std::int32_t size = 0;         ///< Rows of the embedding.
  std::vector<TokenId> ends;     ///< All that end a response.
};

class Tokenizer {
 public:
  /// The tokenizer a task asks for (`auto` resolved) where the model is made for the task.
  static Tokenizer for_task(const TaskConfig& task);
  /// The tokenizer of a model's folder, unless the task asks for another. A folder without
  /// tokenizer.json gives one that knows token ids alone. Errors name the file; a model without end
  /// tokens.
  static Result<Tokenizer> of_model(const TaskConfig& task, const ModelTokens& model);

  /// Token ids without an end mark. Error: what is not in the vocabulary, named.
  Result<std::vector<TokenId>> encode(std::string_view text) const;
  /// Stops at the first end mark. Ids outside the vocabulary are skipped.
  std::string decode(const std::vector<TokenId>& tokens) const;

  TokenId pad() const { return 0; }
  /// End of response, the first of ends().
  TokenId end() const { return ends_.front(); }
  const std::vector<TokenId>& ends() const { return ends_; }
  /// Of the first character; the others follow in the order of alphabet().
  TokenId first() const;
  /// Empty: the characters are the 256 values of a byte.
  const std::string& alphabet() const { return alphabet_; }
  /// Of the model; at least the tokenizer's own.
  std::int32_t vocabulary() const { return vocabulary_; }
  /// A text of n bytes may have more than n tokens: never with ours, nor without a text.
  bool is_of_model() const { return kind_ == Kind::BytePair; }

 private:
  enum class Kind { Alphabet, BytePair, IdsOnly };
  explicit Tokenizer(std::string alphabet);

  Kind kind_ = Kind::Alphabet;
  std::string alphabet_;  ///< Empty: bytes.
  std::vector<TokenId> ends_{1};
  std::int32_t vocabulary_ = 0;
  std::shared_ptr<const BytePairTokenizer> byte_pair_;
};

/// A tokenizer.json that means the same as a built-in tokenizer, for a folder that others read.
std::string tokenizer_json_of(const Tokenizer& tokenizer);

}  // namespace temper::actors
