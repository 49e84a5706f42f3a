#include "actors/simulation/lengths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::actors {
namespace {

constexpr std::uint64_t kDraws = 100000;

LengthConfig lognormal(double mean, double spread, std::int64_t cap) {
  LengthConfig c;
  c.mean = mean;
  c.p99_over_median = spread;
  c.cap = Tokens(cap);
  return c;
}

std::vector<std::int64_t> draw(const Lengths& lengths, std::uint64_t count = kDraws) {
  std::vector<std::int64_t> out;
  for (std::uint64_t i = 0; i < count; ++i)
    out.push_back(lengths.of(i).count());
  return out;
}

double mean_of(const std::vector<std::int64_t>& values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0})) /
         static_cast<double>(values.size());
}

TEST(Lengths, HaveTheConfiguredMeanAfterTheCap) {
  for (const auto& [mean, spread, cap] : {std::tuple{1577.0, 4.0, std::int64_t{3072}},
                                          std::tuple{7345.0, 5.0, std::int64_t{32768}},
                                          std::tuple{10119.0, 10.0, std::int64_t{34000}},
                                          std::tuple{512.0, 3.0, std::int64_t{100000}},
                                          std::tuple{20.0, 2.0, std::int64_t{64}}}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const auto values = draw(Lengths(lognormal(mean, spread, cap), seed, "x"));
      EXPECT_NEAR(mean_of(values), mean, 0.01 * mean) << mean << " seed " << seed;
      EXPECT_LE(*std::max_element(values.begin(), values.end()), cap);
      EXPECT_GE(*std::min_element(values.begin(), values.end()), 1);
    }
  }
}

TEST(Lengths, HaveTheConfiguredSpread) {
  auto values = draw(Lengths(lognormal(2000, 10, 1000000), 7, "x"));
  std::sort(values.begin(), values.end());
  const auto at = [&](double p) {
    return static_cast<double>(values[static_cast<std::size_t>(p * kDraws)]);
  };
  EXPECT_NEAR(at(0.99) / at(0.5), 10, 0.4);
  // The same below the median: 1/10 at 1 %.
  EXPECT_NEAR(at(0.01) / at(0.5), 0.1, 0.004);
  // Between: exp(sigma z) with sigma = ln 10 / 2.3263 and z(0.84134) = 1.
  EXPECT_NEAR(at(0.841345) / at(0.5), std::exp(std::log(10) / 2.32635), 0.05);
}

TEST(Lengths, DoNotDependOnOrderOrObject) {
  const Lengths a(lognormal(4096, 5, 32768), 11, kResponseLengths);
  const Lengths b(lognormal(4096, 5, 32768), 11, kResponseLengths);
  for (std::uint64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(a.of(999 - i), b.of(999 - i));
  std::vector<std::int64_t> backwards;
  for (std::uint64_t i = 0; i < 1000; ++i)
    backwards.insert(backwards.begin(), b.of(999 - i).count());
  EXPECT_EQ(draw(a, 1000), backwards);
}

TEST(Lengths, OfSiblingsHaveTheConfiguredCorrelation) {
  LengthConfig config = lognormal(2000, 10, 1000000);
  config.sibling_correlation = 0.6;
  const Lengths lengths(config, 7, kResponseLengths);
  // Pairs of one family each; of logarithms, the correlation is what was asked for.
  constexpr std::uint64_t kPairs = 40000;
  double sum = 0, squares = 0, products = 0, mean = 0;
  for (std::uint64_t family = 0; family < kPairs; ++family) {
    const auto first = static_cast<double>(lengths.of(2 * family, family).count());
    const auto second = static_cast<double>(lengths.of(2 * family + 1, family).count());
    const double a = std::log(first), b = std::log(second);
    sum += a + b;
    squares += a * a + b * b;
    products += a * b;
    mean += first + second;
  }
  const double average = sum / (2 * kPairs);
  const double variance = squares / (2 * kPairs) - average * average;
  EXPECT_NEAR((products / kPairs - average * average) / variance, 0.6, 0.02);
  EXPECT_NEAR(mean / (2 * kPairs), 2000, 60);
  EXPECT_NEAR(std::sqrt(variance), std::log(10) / 2.32635, 0.02);
}

TEST(Lengths, DifferBetweenSeedsAndStreams) {
  const auto of = [](std::uint64_t seed, std::string_view stream) {
    return draw(Lengths(lognormal(4096, 5, 32768), seed, stream), 100);
  };
  EXPECT_NE(of(1, kPromptLengths), of(1, kResponseLengths));
  EXPECT_NE(of(1, kPromptLengths), of(2, kPromptLengths));
}

TEST(Lengths, OfConsecutiveIndicesAreUncorrelated) {
  const auto values = draw(Lengths(lognormal(4096, 3, 100000), 5, "x"));
  const double mean = mean_of(values);
  double variance = 0;
  double product = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const double a = static_cast<double>(values[i]) - mean;
    variance += a * a;
    product += a * (static_cast<double>(values[i + 1]) - mean);
  }
  EXPECT_LT(std::abs(product / variance), 0.012);
}

TEST(Lengths, AreTheSameOnEveryMachine) {
  // Written down once; a difference means that arithmetic is not the same everywhere.
  const Lengths lengths(lognormal(8192, 5, 32768), 42, kResponseLengths);
  EXPECT_EQ(draw(lengths, 8),
            (std::vector<std::int64_t>{15228, 1549, 32768, 18867, 9607, 18103, 6446, 5002}));
}

TEST(Lengths, OfAHistogramFollowItsWeights) {
  LengthConfig c;
  c.kind = LengthKind::Histogram;
  c.width = Tokens(100);
  c.weights = {1, 0, 3};
  c.cap = Tokens(290);
  const auto values = draw(Lengths(c, 1, "x"));
  const auto in = [&](std::int64_t from, std::int64_t to) {
    return static_cast<double>(
               std::count_if(values.begin(),
                             values.end(),
                             [&](std::int64_t v) { return v >= from && v <= to; })) /
           kDraws;
  };
  EXPECT_NEAR(in(1, 100), 0.25, 0.01);
  EXPECT_EQ(in(101, 200), 0);
  EXPECT_NEAR(in(201, 290), 0.75, 0.01);
  // 201 to 300 alike, cut off at 290: 11 of 100 are 290.
  EXPECT_NEAR(in(290, 290), 0.75 * 0.11, 0.005);
  EXPECT_NEAR(in(1, 50), 0.125, 0.01);
}

TEST(Lengths, OfATraceRepeatIt) {
  LengthConfig c;
  c.kind = LengthKind::Trace;
  c.lengths = {5, 700, 30};
  c.cap = Tokens(600);
  EXPECT_EQ(draw(Lengths(c, 1, "x"), 4), (std::vector<std::int64_t>{5, 600, 30, 5}));
}

TEST(Lengths, MayBeConstant) {
  LengthConfig c;
  c.kind = LengthKind::Constant;
  c.mean = 77;
  EXPECT_EQ(draw(Lengths(c, 1, "x"), 3), (std::vector<std::int64_t>{77, 77, 77}));
  c.kind = LengthKind::Lognormal;
  c.p99_over_median = 1;
  EXPECT_EQ(draw(Lengths(c, 1, "x"), 3), (std::vector<std::int64_t>{77, 77, 77}));
}

TEST(Lengths, RejectInvalidConfigurations) {
  EXPECT_TRUE(check_lengths(LengthConfig{}));
  EXPECT_FALSE(check_lengths(lognormal(0, 5, 10)));
  EXPECT_FALSE(check_lengths(lognormal(11, 5, 10)));
  EXPECT_FALSE(check_lengths(lognormal(std::nan(""), 5, 10)));
  EXPECT_FALSE(check_lengths(lognormal(5, 0.5, 10)));
  LengthConfig c;
  c.kind = LengthKind::Histogram;
  EXPECT_FALSE(check_lengths(c));
  c.weights = {0, 0};
  EXPECT_FALSE(check_lengths(c));
  c.weights = {1, -1};
  EXPECT_FALSE(check_lengths(c));
  c.kind = LengthKind::Trace;
  EXPECT_FALSE(check_lengths(c));
  c.lengths = {3, 0};
  EXPECT_FALSE(check_lengths(c));
}

}  // namespace
}  // namespace temper::actors
