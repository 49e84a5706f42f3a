// Changes a text before it is split: the section `normalizer` of a tokenizer.json.
#pragma once

#include "actors/byte_pair/section.hpp"

#include <variant>

namespace temper::actors {

class Normalizer {
 public:
  /// Supports null, NFC, Prepend, Replace of a fixed text, and a Sequence of these. Errors:
  /// Unsupported, naming any other kind or value.
  static Result<Normalizer> parse(const Section& section);
  /// Requires: valid UTF-8.
  std::string apply(std::string_view text) const;

 private:
  struct Compose {};
  struct Prepend {
    std::string text;
  };
  std::vector<std::variant<Compose, Prepend, Replacement>> steps_;
};

}  // namespace temper::actors
