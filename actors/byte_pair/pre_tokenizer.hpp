// Normalizes and splits a text before its pieces are encoded: the sections `normalizer` and
// `pre_tokenizer` of a tokenizer.json.
#pragma once

#include "actors/byte_pair/unicode.hpp"

#include <nlohmann/json_fwd.hpp>

namespace temper::actors {

class PreTokenizer {
 public:
  /// Supports NFC (or no normalizer), and any number of Split and Digits before ByteLevel. Errors:
  /// Unsupported, naming any other kind or setting.
  static Result<PreTokenizer> parse(const nlohmann::json& normalizer,
                                    const nlohmann::json& pre_tokenizer);
  /// Splits a text. Requires: valid UTF-8. Error: a regular expression failed on the text.
  Result<std::vector<std::string>> pieces(std::string_view text) const;

 private:
  Status add(const nlohmann::json& step);

  bool compose_ = false;
  bool to_bytes_ = false;  ///< True if ByteLevel is present.
  std::vector<TextPattern> splits_;
};

}  // namespace temper::actors
