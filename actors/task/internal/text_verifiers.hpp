// The verifiers that only compare text. A reward is 1 or 0.
#pragma once

#include "actors/task/verifier.hpp"

namespace temper::actors {

/// Longest response that a pattern is tried on, in bytes: matching costs time in proportion to the
/// length of the response times the size of the pattern. A longer one is a failure.
inline constexpr std::size_t kLongestMatched = std::size_t{1} << 16;
/// Longest pattern with the answer in it, in bytes: its compiler recurses over it.
inline constexpr std::size_t kLongestPattern = std::size_t{1} << 13;

/// Stands for the answer in a pattern.
inline constexpr std::string_view kAnswerInPattern = "{answer}";

/// Equal without the white space around.
std::unique_ptr<Verifier> make_exact_verifier();

/// The last number of the response against the number of the answer (final_number()).
std::unique_ptr<Verifier> make_numeric_verifier(double tolerance);

/// The response contains a match of `pattern`, in which `{answer}` stands for the answer, every
/// character meaning itself. ECMAScript without back-references and look-ahead: those are refused,
/// since no bound on the time of a match holds with them. `.` and classes match bytes; 64 KiB of
/// response take a few milliseconds.
Result<std::unique_ptr<Verifier>> make_regex_verifier(const std::string& pattern);

}  // namespace temper::actors
