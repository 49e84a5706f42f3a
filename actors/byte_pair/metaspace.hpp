// Spaces as a visible character, as SentencePiece writes them: steps of type Metaspace of a
// `pre_tokenizer` and of a `decoder`.
#pragma once

#include "actors/byte_pair/section.hpp"

namespace temper::actors {

/// Where a part of a text is in the text that is encoded.
enum class TextPlace { Start, Later };

class Metaspace {
 public:
  /// Error InvalidInput: a value that is not supported.
  static Result<Metaspace> parse(const Section& step);

  /// Replaces the spaces, and puts one before the text unless it begins with one.
  std::string encode(std::string_view text, TextPlace place) const;
  /// Restores the spaces. The first token of a text loses those that it begins with, or has inside,
  /// if encode() adds one.
  std::string decode(std::string_view token, TextPlace place) const;

  const std::string& replacement() const { return replacement_; }
  /// True if a new piece begins at each space.
  bool splits() const { return splits_; }

 private:
  enum class Prefix { Always, First, Never };

  std::string replacement_;
  Prefix prefix_ = Prefix::Always;
  bool splits_ = true;
};

}  // namespace temper::actors
