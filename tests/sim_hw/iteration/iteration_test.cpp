#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/iteration/one_card.hpp"
#include "sim_hw/queries/queries.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

namespace temper::sim_hw {
namespace {

std::vector<double> random_lengths(std::size_t count, double longest) {
  std::mt19937_64 random(11);
  std::vector<double> out(count);
  for (double& length : out)
    length = 1 + static_cast<double>(random() % static_cast<std::uint64_t>(longest));
  std::sort(out.begin(), out.end());
  return out;
}

TEST(MicroBatches, FillInAscendingLengthUpToTheLimit) {
  // Prompt 10, limit 100: 20+20+20 would be 60 with a fourth of 35 -> 4 x 45 = 180 > 100.
  const auto batches = fill_micro_batches({10, {10, 10, 10, 35, 36, 95}}, 100);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[0].sequences, 3);
  EXPECT_EQ(batches[0].seq, 20);
  EXPECT_EQ(batches[1].sequences, 2);  // 2 x 46 = 92.
  EXPECT_EQ(batches[1].seq, 46);
  EXPECT_EQ(batches[2].sequences, 1);  // 105 tokens: above the limit, alone.
  EXPECT_EQ(batches[2].seq, 105);
}

TEST(MicroBatches, ConserveSequencesAndRespectTheLimit) {
  for (const double prompt : {1.0, 256.0}) {
    for (const std::size_t count : {1U, 7U, 500U}) {
      const IterationWork work{prompt, random_lengths(count, 3000)};
      for (const double limit : {1.0, 2048.0, kMicroBatchTokens}) {
        double sequences = 0;
        std::size_t last = 0;
        for (const MicroBatch& batch : fill_micro_batches(work, limit)) {
          EXPECT_GE(batch.sequences, 1);
          EXPECT_TRUE(batch.sequences == 1 || batch.sequences * batch.seq <= limit);
          last += static_cast<std::size_t>(batch.sequences);
          EXPECT_EQ(batch.seq, prompt + work.lengths[last - 1]);  // Padded to its longest.
          sequences += batch.sequences;
        }
        EXPECT_EQ(sequences, static_cast<double>(count));
      }
    }
  }
  EXPECT_TRUE(fill_micro_batches({10, {}}, 100).empty());
}

class OneCard : public testing::Test {
 protected:
  Catalog catalog_ = Catalog::shipped();
  Device device_ = make_device(**catalog_.hardware("nvidia-h200"));
  StepModel model(std::string_view name) { return make_step_model(**catalog_.model(name)); }
};

/// Step by step: count the live responses, round up, look up the context.
double decode_step_by_step(const Device& d, const StepModel& m, const IterationWork& work) {
  double seconds = 0;
  for (int step = 0; step < static_cast<int>(work.lengths.back()); ++step) {
    const auto live = static_cast<int>(std::count_if(
        work.lengths.begin(), work.lengths.end(), [&](double length) { return length > step; }));
    const int multiple = live > 32 ? 64 : 8;
    const int batch = (live + multiple - 1) / multiple * multiple;
    const int context = (step / 256 + 1) * 256;
    seconds +=
        decode_seconds(d, m, {static_cast<double>(batch), work.prompt + context, Launch::Graph});
  }
  return seconds;
}

TEST_F(OneCard, DecodeTimeIsTheSumOfItsSteps) {
  const StepModel m = model("qwen2.5-7b");
  for (const auto& lengths : {random_lengths(1, 600),
                              random_lengths(33, 2000),
                              random_lengths(300, 2048),
                              std::vector<double>(64, 256),
                              std::vector<double>{1, 1, 255, 256, 257, 512, 512}}) {
    const IterationWork work{256, lengths};
    EXPECT_NEAR(one_card_iteration(device_, m, work).decode / decode_step_by_step(device_, m, work),
                1,
                1e-9)
        << lengths.size();
  }
}

TEST_F(OneCard, CountsTokensAndSumsItsPhases) {
  const StepModel m = model("qwen2.5-0.5b");
  const IterationWork work{100, {50, 60, 200}};
  const OneCardIteration it = one_card_iteration(device_, m, work);
  EXPECT_EQ(it.response_tokens, 310);
  EXPECT_EQ(it.longest, 200);
  EXPECT_EQ(it.decode_steps, 200);
  EXPECT_EQ(it.micro_batches, 1);
  EXPECT_EQ(it.padded_tokens, 3 * 300);
  EXPECT_EQ(it.prefill, prefill_seconds(device_, m, {3, 100}));
  EXPECT_EQ(it.reference, logprob_seconds(device_, m, {3, 300}));
  EXPECT_EQ(it.update,
            forward_backward_seconds(device_, m, {3, 300}, Recompute::Full) +
                optimizer_seconds(device_, m.parameters));
  EXPECT_DOUBLE_EQ(it.total(), it.prefill + it.decode + it.reference + it.update + it.weight_sync);
}

TEST_F(OneCard, PrefillsSixtyFourPromptsAtATime) {
  const StepModel m = model("qwen2.5-0.5b");
  const OneCardIteration it = one_card_iteration(device_, m, {100, std::vector<double>(150, 2)});
  // 150 = 64 + 64 + 22.
  EXPECT_DOUBLE_EQ(
      it.prefill,
      2 * prefill_seconds(device_, m, {64, 100}) + prefill_seconds(device_, m, {22, 100}));
}

TEST_F(OneCard, TakesLongerForLongerResponses) {
  const StepModel m = model("qwen2.5-0.5b");
  double before = 0;
  for (const double length : {1.0, 100.0, 256.0, 257.0, 4000.0}) {
    const double total =
        one_card_iteration(device_, m, {100, std::vector<double>(64, length)}).total();
    EXPECT_GT(total, before);
    before = total;
  }
}

double mean_of(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
}

TEST(Lengths, OfALognormalHaveTheirMeanAndCap) {
  for (const double spread : {1.5, 4.0, 10.0}) {
    for (const double mean : {50.0, 800.0, 1800.0}) {
      const auto lengths = lognormal_lengths(512, mean, 2048, spread);
      ASSERT_TRUE(lengths) << lengths.error().context;
      ASSERT_EQ(lengths->size(), 512U);
      EXPECT_NEAR(mean_of(*lengths), mean, 0.5) << spread;
      EXPECT_TRUE(std::is_sorted(lengths->begin(), lengths->end()));
      EXPECT_GE(lengths->front(), 1);
      EXPECT_LE(lengths->back(), 2048);
      for (const double length : *lengths)
        EXPECT_EQ(length, std::floor(length));
    }
  }
}

TEST(Lengths, OfALognormalHaveTheirSpread) {
  // Far from the cap, the 99th percentile is four medians.
  const auto lengths = lognormal_lengths(10000, 1000, 1e9, 4);
  ASSERT_TRUE(lengths);
  EXPECT_NEAR((*lengths)[9899] / (*lengths)[4999], 4, 0.04);
}

TEST(Lengths, WithoutSpreadAllEqualTheMean) {
  EXPECT_EQ(*lognormal_lengths(3, 100, 200, 1), (std::vector<double>{100, 100, 100}));
  EXPECT_EQ(*lognormal_lengths(2, 200, 200, 1), (std::vector<double>{200, 200}));
}

TEST(Lengths, RefuseAnImpossibleMean) {
  EXPECT_EQ(lognormal_lengths(4, 300, 200, 2).error().context,
            "mean response length: found 300, above the cap of 200 tokens");
  EXPECT_EQ(lognormal_lengths(4, 0.5, 200, 2).error().context,
            "mean response length: expected 1 token or more, found 0.5");
  EXPECT_FALSE(lognormal_lengths(4, std::nan(""), 200, 2));
}

TEST(RolloutLengths, WeightLongResponsesByTheirRunTime) {
  // Responses of 100 and 300: a running one is of the second three times as often. Made so far:
  // (100^2 + 300^2) / (2 x 400) = 125; the square (100^3 + 300^3) / (3 x 400) = 23333.3.
  const std::array<double, 2> responses{100, 300};
  const RolloutLengths lengths = rollout_lengths(50, responses);
  EXPECT_DOUBLE_EQ(lengths.response, 200);
  EXPECT_DOUBLE_EQ(lengths.longest, 350);
  EXPECT_DOUBLE_EQ(lengths.context, 50 + 125);
  EXPECT_NEAR(lengths.spread, std::sqrt(23333.3333 - 125.0 * 125.0), 1e-3);
}

class LengthsFile : public testing::Test {
 protected:
  std::filesystem::path holding(std::string_view text) {
    const std::filesystem::path file = folder_ / "lengths.json";
    std::ofstream(file) << text;
    return file;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(LengthsFile, IsReadAscending) {
  EXPECT_EQ(*read_lengths(holding("[3, 1, 2]")), (std::vector<double>{1, 2, 3}));
}

TEST_F(LengthsFile, ErrorsNameTheFileAndEntry) {
  for (const char* text : {"", "[1, 2", "{\"a\": 1}", "[]", "3"}) {
    const auto lengths = read_lengths(holding(text));
    ASSERT_FALSE(lengths) << text;
    EXPECT_NE(
        lengths.error().context.find("lengths.json: expected a non-empty JSON array of lengths"),
        std::string::npos)
        << lengths.error().context;
  }
  for (const char* bad : {"0", "-4", "1.5", "\"7\"", "null", "1e30", "18446744073709551615"}) {
    const auto lengths = read_lengths(holding(fmt::format("[8, {}]", bad)));
    ASSERT_FALSE(lengths) << bad;
    EXPECT_NE(lengths.error().context.find("entry 2"), std::string::npos)
        << lengths.error().context;
  }
  EXPECT_EQ(read_lengths(folder_ / "none.json").error().code, ErrorCode::NotFound);
}

TEST_F(LengthsFile, NeedsOneLengthPerResponseWithinTheMaximum) {
  Catalog catalog = Catalog::shipped();
  const auto failure = [&](const char* lengths, const char* params) {
    holding(lengths);
    const auto answer = cost_of(
        {catalog, folder_.path()},
        {"nvidia-h200",
         1,
         "rl_iteration",
         std::move(*Params::parse(fmt::format("model=qwen2.5-0.5b;prompts=2;group=2;prompt_len="
                                              "10;lengths=lengths.json;{}",
                                              params)))});
    return answer ? std::string() : answer.error().context;
  };
  EXPECT_EQ(failure("[1,2,3,4]", "max_new=4"), "");
  EXPECT_EQ(failure("[1,2,3]", "max_new=4"),
            "rl_iteration: lengths: found 3 responses, expected prompts x group = 4");
  EXPECT_EQ(failure("[1,2,3,5]", "max_new=4"),
            "rl_iteration: lengths: the longest response has 5 tokens, above max_new=4");
}

}  // namespace
}  // namespace temper::sim_hw
