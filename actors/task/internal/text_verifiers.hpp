// Verifiers that compare text. The reward is 1 or 0.
#pragma once

#include "actors/task/verifier.hpp"

namespace temper::actors {

/// Longest response that is matched against a pattern, in bytes: matching takes time proportional
/// to the response length times the pattern size. A longer response is a failure.
inline constexpr std::size_t kLongestMatched = std::size_t{1} << 16;
/// Longest pattern after the answer is inserted, in bytes: its compiler recurses over the pattern.
inline constexpr std::size_t kLongestPattern = std::size_t{1} << 13;

/// Placeholder for the answer in a pattern.
inline constexpr std::string_view kAnswerInPattern = "{answer}";

/// Compares response and answer without surrounding white space.
std::unique_ptr<Verifier> make_exact_verifier();

/// Compares the final number of the response with that of the answer (final_number()).
std::unique_ptr<Verifier> make_numeric_verifier(double tolerance);

/// Searches the response for `pattern`, in which `{answer}` is replaced by the escaped answer.
/// ECMAScript syntax without back-references and look-ahead, because the matching time would be
/// unbounded with them (error InvalidInput). `.` and classes match bytes. Matching 64 KiB takes a
/// few milliseconds.
Result<std::unique_ptr<Verifier>> make_regex_verifier(const std::string& pattern);

}  // namespace temper::actors
