// The length of the n-th prompt or response: a pure function of (configuration, seed, stream name,
// n), so that a response is as long whichever engine makes it, in whatever order, on any machine.
//
// constant   the mean
// lognormal  round(median exp(sigma z)), z normal, cut off at the cap. sigma = ln(p99 / median) /
//            2.3263; the median is solved once, so that the mean *after* rounding and the cap is
//            the one asked for (integral over z in steps of 1/32). Where the cap lies below the
//            99th percentile, that is the cap. With siblings, z = sqrt(c) z_family + sqrt(1 - c)
//            z_own for their correlation c: as a whole the distribution stays what it is.
// histogram  a bin by its weight, then any length of the bin alike; cut off at the cap
// trace      entry n mod size, cut off at the cap
// At least 1 everywhere. Identical on every machine: exp, log and the quantile are written out in
// additions, multiplications, divisions and square roots, compiled without contraction.
// Immutable after construction; any thread.
#pragma once

#include "actors/simulation/length_config.hpp"
#include "core/result.hpp"

#include <string_view>

namespace temper::actors {

/// Streams of a run: prompts by group id, responses by response id.
inline constexpr std::string_view kPromptLengths = "prompt-lengths";
inline constexpr std::string_view kResponseLengths = "response-lengths";

/// Errors: a mean outside 1 to the cap, weights that are negative or all zero, an empty trace, a
/// trace with an entry below 1.
Status check_lengths(const LengthConfig& config);

class Lengths {
 public:
  /// Requires: check_lengths(config).
  Lengths(const LengthConfig& config, std::uint64_t seed, std::string_view stream);

  Tokens of(std::uint64_t index) const { return of(index, index); }
  /// Of one of the family's (a group's responses); only lognormal lengths know families.
  Tokens of(std::uint64_t index, std::uint64_t family) const;
  Tokens cap() const { return Tokens(cap_); }

 private:
  LengthKind kind_;
  std::int64_t cap_;
  std::uint64_t key_;
  std::int64_t constant_ = 1;
  double median_ = 1;
  double sigma_ = 0;
  double of_family_ = 0, of_own_ = 1;  ///< Shares of a normal deviate.
  std::vector<double> cumulative_;     ///< histogram: share of the bins up to each.
  std::int64_t width_ = 1;
  std::vector<std::int32_t> trace_;
};

}  // namespace temper::actors
