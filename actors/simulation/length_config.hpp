// Lengths of prompts and responses on simulated hardware: drawn per group and per response from the
// run's seed, so that a length does not depend on the engine or the staleness rule.
#pragma once

#include "core/describe.hpp"

#include <array>
#include <string>
#include <vector>

namespace temper {
namespace actors {

enum class LengthKind { Constant, Lognormal, Histogram, Trace };

struct LengthConfig {
  LengthKind kind = LengthKind::Lognormal;
  double mean = 4096;
  double p99_over_median = 5;  ///< lognormal
  Tokens cap{32768};
  std::vector<double> weights;        ///< histogram: weights of bins of `width` tokens, starting at
                                      ///< 1.
  Tokens width{1024};                 ///< histogram
  std::string trace;                  ///< trace: file with a JSON array of lengths, used
                                      ///< cyclically.
  std::vector<std::int32_t> lengths;  ///< trace: content of the file, filled when it is read.
  double sibling_correlation = 0;     ///< lognormal: correlation of logarithms within a group.
};
void describe(auto& v, LengthConfig& c) {
  v.field(1, "kind", c.kind, {.doc = "constant, lognormal, histogram or trace."});
  v.field(2, "mean", c.mean, {.doc = "Mean in tokens, after the cap.", .min = 1.0});
  v.field(3,
          "p99_over_median",
          c.p99_over_median,
          {.doc = "lognormal: ratio of the 99th percentile to the median.", .min = 1.0});
  v.field(4, "cap", c.cap, {.doc = "Longest length, in tokens.", .min = Tokens(1)});
  v.field(5, "weights", c.weights, {.doc = "histogram: weight of each bin."});
  v.field(6, "width", c.width, {.doc = "histogram: width of a bin, in tokens.", .min = Tokens(1)});
  v.field(7, "trace", c.trace, {.doc = "trace: JSON file of lengths."});
  v.field(8, "lengths", c.lengths, {.doc = "trace: the lengths, read from the file."});
  v.field(
      9,
      "sibling_correlation",
      c.sibling_correlation,
      {.doc =
           "lognormal, responses: correlation of the logarithms of two lengths of a group; 0: the "
           "prompt does not affect the length of its responses.",
       .min = 0.0,
       .max = 1.0});
}

}  // namespace actors

template <>
struct EnumNames<actors::LengthKind> {
  using K = actors::LengthKind;
  static constexpr std::array<std::pair<K, std::string_view>, 4> value{{{K::Constant, "constant"},
                                                                        {K::Lognormal, "lognormal"},
                                                                        {K::Histogram, "histogram"},
                                                                        {K::Trace, "trace"}}};
};

}  // namespace temper
