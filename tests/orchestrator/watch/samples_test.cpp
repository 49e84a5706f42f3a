#include "cli/run/samples_command.hpp"
#include "core/json_read.hpp"
#include "orchestrator/watch/samples_file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace temper::orchestrator {
namespace {

/// The folder of a run that writes samples of addition.
class SamplesTest : public ::testing::Test {
 protected:
  Status add(SamplesFile& file, std::uint64_t group, double reward, std::string_view answer) {
    command::Release release;
    release.group = GroupId(group);
    release.outcome = Outcome::Filtered;
    release.reason = "equal rewards";
    GroupPayload payload;
    payload.prompt = "12+34=";
    payload.answer = "64";
    ResponsePayload response;
    response.tokens = *tokenizer_.encode(answer);
    response.tokens.push_back(tokenizer_.end());
    response.logprobs.assign(response.tokens.size(), -0.5F);
    response.reward = reward;
    response.segments = {{PolicyVersion(3), Tokens(1)},
                         {PolicyVersion(4), Tokens(std::ssize(response.tokens) - 1)}};
    payload.responses = {response, {}};
    return file.add({release, payload, tokenizer_}, metrics_);
  }
  std::vector<Sample> read() {
    std::vector<Sample> samples;
    EXPECT_TRUE(read_sample_lines(folder_.path(), [&](std::string_view line) {
      samples.push_back(parse_sample(line).value());
      return Go::On;
    }));
    return samples;
  }
  std::string shown(cli::SamplesOptions options) {
    options.run = folder_.path();
    std::ostringstream out, err;
    code_ = cli::run_samples(options, out, err);
    return out.str() + err.str();
  }

  test::TemporaryFolder folder_;
  actors::Tokenizer tokenizer_ = actors::Tokenizer::for_task({});
  RunMetrics metrics_;
  int code_ = 0;
};

TEST_F(SamplesTest, ASampleHasTextVersionsAndReward) {
  SamplesFile file(folder_.path(), {1, Bytes(1 << 20)});
  ASSERT_TRUE(add(file, 7, 0.25, "64"));
  const auto samples = read();
  ASSERT_EQ(samples.size(), 1U);  // what was never generated is no sample
  const Sample& s = samples.front();
  EXPECT_EQ(s.group, 7U);
  EXPECT_EQ(s.prompt, "12+34=");
  EXPECT_EQ(s.response, "64");
  EXPECT_EQ(s.answer, "64");
  EXPECT_EQ(s.reward, 0.25);
  EXPECT_EQ(s.length, 3U);
  EXPECT_EQ(s.logprob, -0.5);
  EXPECT_EQ(s.v0, 3U);
  EXPECT_EQ(s.outcome, Outcome::Filtered);
  ASSERT_EQ(s.segments.size(), 2U);
  EXPECT_EQ(s.segments[0].text, "6");
  EXPECT_EQ(s.segments[1].text, "4");
  EXPECT_EQ(s.segments[1].version, PolicyVersion(4));
}

TEST_F(SamplesTest, AShareOfTheGroupsIsKeptAndAlwaysTheSame) {
  SamplesFile a(folder_.path(), {0.25, Bytes(1 << 20)}), b(folder_.path(), {0.25, Bytes(1 << 20)});
  int kept = 0;
  for (std::uint64_t group = 0; group < 4000; ++group) {
    EXPECT_EQ(a.keeps(GroupId(group)), b.keeps(GroupId(group)));
    kept += a.keeps(GroupId(group)) ? 1 : 0;
  }
  EXPECT_NEAR(kept, 1000, 100);  // 4000 draws at 0.25: a standard deviation of 27
}

TEST_F(SamplesTest, AllAreKeptAtAShareOfOneAndNoneAtZero) {
  const SamplesFile all(folder_.path(), {1, Bytes(1 << 20)});
  const SamplesFile none(folder_.path(), {0, Bytes(1 << 20)});
  for (std::uint64_t group = 0; group < 1000; ++group) {
    EXPECT_TRUE(all.keeps(GroupId(group)));
    EXPECT_FALSE(none.keeps(GroupId(group)));
  }
}

TEST_F(SamplesTest, TheBudgetHoldsAndTheNewestStay) {
  constexpr std::int64_t kBudget = 1 << 16;
  SamplesFile file(folder_.path(), {1, Bytes(kBudget)});
  for (std::uint64_t group = 0; group < 1000; ++group)
    ASSERT_TRUE(add(file, group, 0, "64"));
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    bytes += entry.file_size();
  EXPECT_LE(bytes, static_cast<std::uintmax_t>(kBudget));
  const auto samples = read();
  EXPECT_GT(samples.size(), 80U);
  EXPECT_EQ(samples.back().group, 999U);
  for (std::size_t i = 1; i < samples.size(); ++i)
    EXPECT_EQ(samples[i].group, samples[i - 1].group + 1);
}

TEST_F(SamplesTest, ALineThatIsBeingWrittenIsPassedOver) {
  SamplesFile file(folder_.path(), {1, Bytes(1 << 20)});
  ASSERT_TRUE(add(file, 1, 0, "64"));
  auto raw = AppendFile::open(folder_ / "samples.jsonl");
  ASSERT_TRUE(raw->append("{\"step\":1,\"gro"));
  EXPECT_EQ(read().size(), 1U);
  EXPECT_EQ(find_samples(folder_.path(), {})->matches, 1U);
}

TEST_F(SamplesTest, TheCommandShowsTheWorstFirst) {
  SamplesFile file(folder_.path(), {1, Bytes(1 << 20)});
  for (const auto& [group, reward] : {std::pair{1, 0.5}, {2, -1.0}, {3, 1.0}, {4, -1.0}})
    ASSERT_TRUE(add(file, static_cast<std::uint64_t>(group), reward, "64"));
  cli::SamplesOptions options;
  options.query.order = SampleQuery::Order::Worst;
  options.query.limit = 3;
  const std::string text = shown(options);
  const auto at = [&](const char* what) { return text.find(what); };
  EXPECT_LT(at("group 2.0"), at("group 4.0"));
  EXPECT_LT(at("group 4.0"), at("group 1.0"));
  EXPECT_EQ(at("group 3.0"), std::string::npos);
  EXPECT_NE(at("3 of 4 samples"), std::string::npos);
  EXPECT_NE(at("versions 3:1 4:2"), std::string::npos) << text;
}

TEST_F(SamplesTest, TheCommandFindsTextAndSaysWhenThereIsNone) {
  SamplesFile file(folder_.path(), {1, Bytes(1 << 20)});
  ASSERT_TRUE(add(file, 1, 0, "64"));
  ASSERT_TRUE(add(file, 2, 0, "73"));
  cli::SamplesOptions options;
  options.query.text = "73";
  EXPECT_NE(shown(options).find("1 of 1 samples"), std::string::npos);
  EXPECT_EQ(code_, 0);
  options.query.text = "99";
  EXPECT_EQ(
      shown(options),
      "temper: no sample with \"99\"; there are 2, the newest of step 0 (`samples.share` says "
      "how many are kept)\n");
  EXPECT_EQ(code_, 3);
}

TEST_F(SamplesTest, ARunWithoutSamplesSaysWhy) {
  EXPECT_NE(shown({}).find("has no samples.jsonl: it holds no run"), std::string::npos);
  EXPECT_EQ(code_, 2);
  std::ofstream(folder_ / "events.log");
  const auto why = [&](const std::string& yaml) {
    std::ofstream(folder_ / "config.yaml") << yaml;
    return shown({});
  };
  EXPECT_NE(why("policy: synthetic\n").find("no real policy"), std::string::npos);
  EXPECT_NE(why("samples: {share: 0}\n").find("`samples.share` is 0"), std::string::npos);
  EXPECT_NE(why("name: a\n").find("no group of the 5 % that are kept"), std::string::npos);
}

TEST_F(SamplesTest, EscapesOfATerminalAreShownNotObeyed) {
  std::ofstream(folder_ / "samples.jsonl")
      << R"({"step":1,"prompt":"a\u001b[2Jb","reward":0})" << '\n';
  EXPECT_NE(shown({}).find("a\\x1b[2Jb"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
