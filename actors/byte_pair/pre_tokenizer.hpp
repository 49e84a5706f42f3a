// Splits a text into pieces that are encoded on their own: the section `pre_tokenizer` of a
// tokenizer.json.
#pragma once

#include "actors/byte_pair/metaspace.hpp"
#include "actors/byte_pair/unicode.hpp"

#include <optional>

namespace temper::actors {

class PreTokenizer {
 public:
  /// Supports null, and any number of Split and Digits, with or without Metaspace before them and
  /// ByteLevel after them. Errors: Unsupported, naming any other kind or setting; InvalidInput if a
  /// regular expression does not compile.
  static Result<PreTokenizer> parse(const Section& section);
  /// Splits a text. Requires: valid UTF-8. Error: a regular expression failed on the text.
  Result<std::vector<std::string>> pieces(std::string_view text, TextPlace place) const;
  /// True if pieces are bytes in the form of to_byte_characters().
  bool to_bytes() const { return to_bytes_; }

 private:
  struct Split {
    TextPattern pattern;
    TextCut cut = TextCut::Around;
  };
  Status add(const Section& step);
  Status add_split(const Section& step);
  Status add_metaspace(const Section& step);
  Status add_byte_level(const Section& step);
  Status cut(std::string_view regex, TextCut cut);

  std::optional<Metaspace> metaspace_;
  std::vector<Split> splits_;
  bool to_bytes_ = false;
};

}  // namespace temper::actors
