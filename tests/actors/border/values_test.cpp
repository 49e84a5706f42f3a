#include "actors/border/values.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace temper::actors {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();

constexpr LogprobOf kSampled = LogprobOf::SampledToken, kScored = LogprobOf::ScoredToken;

TEST(Logprobs, OfSampledTokensAreBounded) {
  for (const double possible : {0.0, -0.0, 1e-3, -1e-9, -1.0, -17.5, -87.3, -99.9, -100.0})
    EXPECT_TRUE(check_logprob(possible, kSampled)) << possible;
  for (const double impossible : {double{kNaN},
                                  double{-kNaN},
                                  double{kInfinity},
                                  double{-kInfinity},
                                  double{kMost},
                                  double{-kMost},
                                  -3e38,
                                  -1e308,
                                  1e308,
                                  -1000.0,
                                  -100.1,
                                  0.0011,
                                  5.0})
    EXPECT_FALSE(check_logprob(impossible, kSampled)) << impossible;
}

TEST(Logprobs, OfScoredTokensMayBeFarLower) {
  for (const double possible : {0.0, 1e-3, -1.0, -101.0, -1000.0, -65504.0, -1e5})
    EXPECT_TRUE(check_logprob(possible, kScored)) << possible;
  for (const double impossible :
       {double{kNaN}, double{kInfinity}, double{-kInfinity}, double{-kMost}, -1.1e5, 0.0011, 5.0})
    EXPECT_FALSE(check_logprob(impossible, kScored)) << impossible;
}

TEST(Logprobs, ImportanceWeightOfTheLeastLikelyTokenHasAFiniteSquare) {
  EXPECT_TRUE(std::isfinite(std::exp(-2 * kLeastSampledLogprob)));
  EXPECT_TRUE(std::isfinite(static_cast<float>(kLeastScoredLogprob * kLeastScoredLogprob)));
}

TEST(Rewards, HaveAFiniteFloatSquare) {
  for (const double possible : {0.0, 1.0, -1.0, 1e-300, 1e6, -1e17, 1e18, -1e18}) {
    EXPECT_TRUE(check_reward(possible)) << possible;
    const auto narrow = static_cast<float>(possible);
    EXPECT_TRUE(std::isfinite(narrow * narrow * 256));
  }
  for (const double impossible : {double{kNaN},
                                  double{kInfinity},
                                  double{-kInfinity},
                                  double{kMost},
                                  double{-kMost},
                                  1e308,
                                  -1e308,
                                  3e38,
                                  1e19,
                                  -1.0001e18})
    EXPECT_FALSE(check_reward(impossible)) << impossible;
}

TEST(Tokens, AreWithinTheVocabulary) {
  for (const std::int64_t possible : {0, 1, 13})
    EXPECT_TRUE(check_token(possible, 14)) << possible;
  for (const std::int64_t impossible : {std::int64_t{-1},
                                        std::int64_t{14},
                                        std::int64_t{1} << 31,
                                        (std::int64_t{1} << 32) + 5,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min()})
    EXPECT_FALSE(check_token(impossible, 14)) << impossible;
}

/// Two tokens as reported by an engine; a response may have six.
struct Reported {
  std::vector<std::int32_t> tokens{3, 4};
  std::vector<float> logprobs{-1, -2};
  std::vector<std::uint8_t> mask{};
  std::vector<float> rewards{};
  std::size_t prefix = 0;

  Status check() const {
    return check_response({tokens, logprobs, mask, rewards}, prefix, {6, 14});
  }
};

struct Case {
  std::string_view name;
  void (*change)(Reported&);
  std::string_view says;
};

class ImpossibleResponse : public ::testing::TestWithParam<Case> {};

TEST_P(ImpossibleResponse, NamesThePlaceAndTheValue) {
  Reported reported;
  ASSERT_TRUE(reported.check());
  GetParam().change(reported);
  const Status checked = reported.check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(checked.error().context.find(GetParam().says), std::string::npos)
      << checked.error().context;
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    ImpossibleResponse,
    ::testing::Values(
        Case{"FewLogprobs", [](Reported& r) { r.logprobs.pop_back(); }, "2 tokens but 1"},
        Case{"ManyLogprobs", [](Reported& r) { r.logprobs.push_back(0); }, "2 tokens but 3"},
        Case{"NoLogprobs", [](Reported& r) { r.logprobs.clear(); }, "2 tokens but 0"},
        Case{"NoTokens", [](Reported& r) { r.tokens.clear(); }, "0 tokens but 2"},
        Case{"ShortMask", [](Reported& r) { r.mask = {1}; }, "2 tokens but 1"},
        Case{"LongRewards",
             [](Reported& r) {
               r.rewards = {0, 0, 0};
             },
             "2 tokens but 3"},
        Case{"MaskOfSeven",
             [](Reported& r) {
               r.mask = {1, 7};
             },
             "token 1: mask 7"},
        Case{"MaskOf255",
             [](Reported& r) {
               r.mask = {255, 0};
             },
             "token 0: mask 255"},
        Case{"NaN", [](Reported& r) { r.logprobs[1] = kNaN; }, "token 1: log-prob nan"},
        Case{"MinusInfinity", [](Reported& r) { r.logprobs[0] = -kInfinity; }, "token 0: log-prob"},
        Case{"AboveZero", [](Reported& r) { r.logprobs[1] = 5; }, "token 1: log-prob 5"},
        Case{"Unlikely", [](Reported& r) { r.logprobs[1] = -1000; }, "token 1: log-prob -1000"},
        Case{"NoToken", [](Reported& r) { r.tokens[1] = 14; }, "token 1: token id 14"},
        Case{"NegativeToken", [](Reported& r) { r.tokens[0] = -5; }, "token 0: token id -5"},
        Case{"TooMany",
             [](Reported& r) {
               r.tokens.assign(7, 1);
               r.logprobs.assign(7, -1);
             },
             "7 tokens"},
        Case{"TooManyWithItsPrefix", [](Reported& r) { r.prefix = 5; }, "7 tokens"},
        Case{"AfterAFullPrefix", [](Reported& r) { r.prefix = 100; }, "102 tokens"},
        Case{"HugeReward",
             [](Reported& r) {
               r.rewards = {0, 3e38F};
             },
             "token 1: reward 3e+38"},
        Case{"NaNReward",
             [](Reported& r) {
               r.rewards = {kNaN, 0};
             },
             "token 0: reward nan"},
        Case{"HugeSum",
             [](Reported& r) {
               r.rewards = {8e17F, 8e17F};
             },
             "sum over tokens"},
        Case{"LowSum",
             [](Reported& r) {
               r.rewards = {-8e17F, -8e17F};
             },
             "sum over tokens"}),
    [](const auto& named) { return std::string(named.param.name); });

TEST(Responses, MayBeEmptyAndUnlimited) {
  EXPECT_TRUE(check_response({}, 0, {}));
  const std::vector<std::int32_t> tokens{-7, 1 << 30};
  const std::vector<float> logprobs{-1, -1};
  EXPECT_TRUE(check_response({tokens, logprobs, {}, {}}, 1 << 30, {}));
}

TEST(Scores, AreOnePerTokenAndBounded) {
  const auto fails = [](std::vector<float> scores) { return !check_scores(scores, 2); };
  EXPECT_FALSE(fails({-1, -300}));
  EXPECT_TRUE(fails({-1}));
  EXPECT_TRUE(fails({-1, -1, -1}));
  EXPECT_TRUE(fails({}));
  EXPECT_TRUE(fails({-1, kNaN}));
  EXPECT_TRUE(fails({-1, -kMost}));
  EXPECT_TRUE(fails({1, -1}));
}

TEST(TopTokens, AreDifferentAndHaveAtMostAllTheProbability) {
  const auto fault = [](std::vector<std::int32_t> ids, std::vector<float> logprobs) {
    const Status checked = check_top(ids, logprobs, 2, {.vocabulary = 9, .top_k = 2});
    return checked ? "" : checked.error().context;
  };
  const std::vector<float> halves(4, -0.7F);
  EXPECT_EQ(fault({1, 2, 2, 1}, halves), "");
  EXPECT_EQ(fault({1, 2, 2, 1}, {-1, -1e4F, 0, -1e4F}), "");
  EXPECT_EQ(fault({1, 2, 3, 3}, halves), "token 1: token id 3 twice among the most likely ones");
  EXPECT_EQ(fault({1, 2, 2, 9}, halves), "token 3: token id 9; the vocabulary has ids 0 to 8");
  EXPECT_NE(fault({1, 2, 2, 1}, {-0.7F, -0.7F, -0.1F, -0.7F}).find("token 1: most likely tokens"),
            std::string::npos);
  EXPECT_NE(fault({1, 2, 2, 1}, {-1, kNaN, -1, -1}), "");
  EXPECT_NE(fault({1, 2, 2, 1}, {-1, -1, -1}), "");
  EXPECT_NE(fault({1, 2}, {-1, -1}).find("expected 4 of each"), std::string::npos);
  EXPECT_TRUE(check_top({}, {}, 7, {}));
}

TEST(Texts, AreBoundedAndCutBetweenCharacters) {
  EXPECT_EQ(bounded_text("short"), "short");
  EXPECT_EQ(bounded_text(""), "");
  const std::string whole(kLongestText, 'x');
  EXPECT_EQ(bounded_text(whole), whole);
  EXPECT_EQ(bounded_text(whole + "y"), whole + fmt::format("... ({} bytes)", kLongestText + 1));
  EXPECT_LT(bounded_text(std::string(10'000'000, 'x')).size(), kLongestText + 32);
  EXPECT_EQ(bounded_text("ab\xE2\x82\xAC", 2), "ab... (5 bytes)");
  EXPECT_EQ(bounded_text("ab\xE2\x82\xAC", 3), "ab... (5 bytes)");
  EXPECT_EQ(bounded_text("ab\xE2\x82\xAC", 4), "ab... (5 bytes)");
  EXPECT_EQ(bounded_text("ab\xE2\x82\xAC", 5), "ab\xE2\x82\xAC");
  EXPECT_EQ(bounded_text(std::string(100, '\x80'), 10).size(), 6U + 15U)
      << "invalid UTF-8 is cut near the limit";
}

}  // namespace
}  // namespace temper::actors
