// A vocabulary with its merges: the section `model` of a tokenizer.json.
#pragma once

#include "actors/byte_pair/merges.hpp"
#include "actors/byte_pair/section.hpp"

#include <array>
#include <optional>
#include <unordered_map>

namespace temper::actors {

class BytePairModel {
 public:
  /// Errors: Unsupported, naming another model or setting; InvalidInput if the vocabulary and the
  /// merges do not fit.
  static Result<BytePairModel> parse(const Section& model);
  /// Appends the tokens of a piece. Requires: valid UTF-8. Error InvalidInput: a character is not
  /// in the vocabulary, and there is no token for its bytes and for unknown characters.
  Status encode(const std::string& piece, std::vector<std::int32_t>& out) const;
  const std::unordered_map<std::string, std::int32_t>& ids() const { return ids_; }

 private:
  Status read_settings(const Section& model);
  Status read_merges(const nlohmann::json& merges);
  bool add_bytes(std::string_view character, std::vector<std::int32_t>& symbols) const;
  Result<std::vector<std::int32_t>> symbols_of(const std::string& piece) const;

  std::unordered_map<std::string, std::int32_t> ids_;      ///< Of all tokens, by their text.
  std::array<std::optional<std::int32_t>, 256> byte_ids_;  ///< Of tokens such as <0xE2>, if they
                                                           ///< replace characters (byte_fallback).
  std::optional<std::int32_t> unknown_;
  bool fuses_unknown_ = false;       ///< One token for adjacent unknown characters (`fuse_unk`).
  bool whole_pieces_first_ = false;  ///< A piece that is itself a token is not split
                                     ///< (`ignore_merges`).
  Merges merges_;
};

/// The id of a token in tokenizer.json. Error InvalidInput: it is not a number in range.
Result<std::int32_t> parse_token_id(const nlohmann::json& value, std::string_view token);

}  // namespace temper::actors
