// Parses a command-line word as one of several names. For an unknown word, the error suggests the
// nearest name, or lists all of them if none is close.
#pragma once

#include "core/result.hpp"
#include "core/scalar_text.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper {

/// The error for an unknown word: "--flag word: did you mean `x`?". Requires: `word` is not in
/// `known`.
Error unknown_name(std::string_view flag,
                   std::string_view word,
                   const std::vector<std::string>& known);

/// The enumerator named by the word. Error: unknown_name().
template <NamedEnum E>
Result<E> parse_name(std::string_view flag, std::string_view word) {
  if (const auto value = from_name<E>(word))
    return *value;
  return unknown_name(flag, word, enum_names<E>());
}

}  // namespace temper
