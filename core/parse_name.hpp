// One word of a command line as one of several names. A word that is none of them is answered with
// "did you mean", or with all of them where nothing is close.
#pragma once

#include "core/result.hpp"
#include "core/scalar_text.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper {

/// Requires: `word` is none of `known`. InvalidInput: "--flag word: did you mean `x`?"
Error unknown_name(std::string_view flag,
                   std::string_view word,
                   const std::vector<std::string>& known);

/// The enumerator that the word names. Error: unknown_name().
template <NamedEnum E>
Result<E> parse_name(std::string_view flag, std::string_view word) {
  if (const auto value = from_name<E>(word))
    return *value;
  return unknown_name(flag, word, enum_names<E>());
}

}  // namespace temper
