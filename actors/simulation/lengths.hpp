// The length of the n-th prompt or response: a pure function of (configuration, seed, stream name,
// n), so that a length does not depend on engine, order or machine.
//
// constant   the mean
// lognormal  round(median exp(sigma z)) with normal z, limited by the cap.
//            sigma = ln(p99 / median) / 2.3263. The median is solved once so that the mean *after*
//            rounding and cap is the configured one (integral over z in steps of 1/32). If the cap
//            is below the 99th percentile, the 99th percentile is the cap. With sibling correlation
//            c, z = sqrt(c) z_family + sqrt(1 - c) z_own, which does not change the overall
//            distribution.
// histogram  a bin drawn by weight, then a uniform length in the bin; limited by the cap
// trace      entry n mod size; limited by the cap
// Always at least 1. Identical on every machine: exp, log and the quantile use only additions,
// multiplications, divisions and square roots, compiled without contraction. Immutable after
// construction; thread-safe.
#pragma once

#include "actors/simulation/length_config.hpp"
#include "core/result.hpp"
#include "sim_hw/iteration/lengths.hpp"

#include <string_view>

namespace temper::actors {

/// Streams of a run: prompts by group id, responses by response id.
inline constexpr std::string_view kPromptLengths = "prompt-lengths";
inline constexpr std::string_view kResponseLengths = "response-lengths";

/// Error InvalidInput: a mean outside 1 to the cap; weights that are negative or all zero; an empty
/// trace; a trace entry below 1.
Status check_lengths(const LengthConfig& config);

class Lengths {
 public:
  /// Requires: check_lengths(config) succeeds.
  Lengths(const LengthConfig& config, std::uint64_t seed, std::string_view stream);

  Tokens of(std::uint64_t index) const { return of(index, index); }
  /// Length of a member of a family (the responses of a group); families affect only lognormal
  /// lengths.
  Tokens of(std::uint64_t index, std::uint64_t family) const;
  Tokens cap() const { return Tokens(cap_); }

 private:
  LengthKind kind_;
  std::int64_t cap_;
  std::uint64_t key_;
  std::int64_t constant_ = 1;
  double median_ = 1;
  double sigma_ = 0;
  double of_family_ = 0, of_own_ = 1;  ///< Weights of the family's and the own normal deviate.
  std::vector<double> cumulative_;     ///< histogram: cumulative share up to each bin.
  std::int64_t width_ = 1;
  std::vector<std::int32_t> trace_;
};

/// Of responses drawn from these distributions, by a fixed seed. Requires: check_lengths() succeeds
/// for both.
sim_hw::RolloutLengths drawn_lengths(const LengthConfig& prompt, const LengthConfig& response);

}  // namespace temper::actors
