// Converts text to token ids and back. Kinds: bytes (any text), characters (a fixed alphabet for
// the built-in task; the small vocabulary keeps a tiny model fast), and the tokenizer of a model
// folder.
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

/// Token properties of a model.
struct ModelTokens {
  std::filesystem::path folder;  ///< May have no tokenizer.json.
  std::int32_t size = 0;         ///< Number of rows of the embedding.
  std::vector<TokenId> ends;     ///< All end-of-response tokens.
};

class Tokenizer {
 public:
  /// The tokenizer for a model made for the task, with `auto` resolved.
  static Tokenizer for_task(const TaskConfig& task);
  /// The tokenizer of a model folder, unless the task names another. A folder without
  /// tokenizer.json gives a tokenizer that handles token ids only. Errors: an invalid
  /// tokenizer.json (named), a vocabulary larger than the model's, a model without end tokens.
  static Result<Tokenizer> of_model(const TaskConfig& task, const ModelTokens& model);

  /// Token ids without an end token. Error InvalidInput: names the text that is not in the
  /// vocabulary.
  Result<std::vector<TokenId>> encode(std::string_view text) const;
  /// Stops at the first end token. Skips ids outside the vocabulary.
  std::string decode(const std::vector<TokenId>& tokens) const;

  TokenId pad() const { return 0; }
  /// End of response, the first of ends().
  TokenId end() const { return ends_.front(); }
  const std::vector<TokenId>& ends() const { return ends_; }
  /// Token id of the first character; the others follow in the order of alphabet().
  TokenId first() const;
  /// Empty if the characters are the 256 byte values.
  const std::string& alphabet() const { return alphabet_; }
  /// Vocabulary size of the model; at least that of the tokenizer.
  std::int32_t vocabulary() const { return vocabulary_; }
  /// True for a model's own tokenizer, with which a text of n bytes may have more than n tokens.
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

/// A tokenizer.json equivalent to a built-in tokenizer, for folders that other programs read.
std::string tokenizer_json_of(const Tokenizer& tokenizer);

}  // namespace temper::actors
