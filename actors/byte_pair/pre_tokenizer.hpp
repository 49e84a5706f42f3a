// What happens to a text before its pieces are encoded: its normal form, and where it is cut. The
// sections `normalizer` and `pre_tokenizer` of a tokenizer.json.
#pragma once

#include "actors/byte_pair/unicode.hpp"

#include <nlohmann/json_fwd.hpp>

namespace temper::actors {

class PreTokenizer {
 public:
  /// Reads NFC (or no normal form) and any number of Split and Digits before ByteLevel. Errors:
  /// another kind or setting, by its name.
  static Result<PreTokenizer> parse(const nlohmann::json& normalizer,
                                    const nlohmann::json& pre_tokenizer);
  /// Requires: UTF-8. Error: an expression gives up on the text.
  Result<std::vector<std::string>> pieces(std::string_view text) const;

 private:
  Status add(const nlohmann::json& step);

  bool compose_ = false;
  bool to_bytes_ = false;  ///< ByteLevel was there.
  std::vector<TextPattern> splits_;
};

}  // namespace temper::actors
