#include "cli/run/samples_command.hpp"
#include "core/files.hpp"
#include "core/json_read.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "orchestrator/watch/samples_file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

namespace temper::orchestrator {
namespace {

/// The folder of a run that writes samples of the addition task.
class SamplesTest : public ::testing::Test {
 protected:
  Status add(SamplesFile& file,
             std::uint64_t group,
             double reward,
             std::string_view answer,
             Outcome outcome = Outcome::Filtered) {
    command::Release release;
    release.group = GroupId(group);
    release.outcome = outcome;
    release.reason = Reason{ReasonKind::EqualRewards};
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
  /// Metrics of a run whose newest step trained these groups.
  void train(std::uint64_t first, std::size_t groups) {
    metrics_ = RunMetrics();
    SchedulerConfig config;
    config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 1},
                     {"trainer-0", actors::RoleKind::Trainer, {CardId(1)}, 0}};
    metrics_.feed({0, Time{}, event::Started{config}, {}});
    command::Train train{ActorId(1), LeaseId(1), {PolicyVersion(0), 2, {}}, {}};
    Commands commands;
    for (std::uint64_t g = first; g < first + groups; ++g) {
      commands.push_back(command::Dispatch{
          ActorId(0), LeaseId(2 + g), GroupId(g), PolicyVersion(0), {ResponseId(g)}, {}});
      train.certificate.groups.push_back({GroupId(g), PolicyVersion(0)});
    }
    commands.push_back(train);
    metrics_.feed({1, Time{}, event::DeadlineReached{}, commands});
    metrics_.feed(
        {2, Time{}, event::Trained{ActorId(1), LeaseId(1), PolicyVersion(1), {}, {}}, {}});
  }
  std::vector<Sample> read() {
    std::vector<Sample> samples;
    EXPECT_TRUE(read_sample_lines(folder_.path(), [&](std::string_view line) {
      samples.push_back(parse_sample(line).value());
      return LineVisit::Continue;
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
  ASSERT_EQ(samples.size(), 1U);  // A response that was never generated is no sample.
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

TEST_F(SamplesTest, SegmentsKeepTheSpacesThatTheyBeginWith) {
  // A tokenizer of the SentencePiece kind: its decoder strips a space at the start of a text.
  ASSERT_TRUE(write_file_atomically(folder_.path() / "tokenizer.json", R"({
    "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "split": false},
    "decoder": {"type": "Metaspace", "replacement": "_"},
    "model": {"type": "BPE", "vocab": {"</s>": 0, "6": 1, "_": 2, "_6": 3},
              "merges": ["_ 6"]}})"));
  tokenizer_ = actors::Tokenizer::of_model({}, {folder_.path(), 4, {0}}).value();
  SamplesFile file(folder_.path(), {1, Bytes(1 << 20)});
  ASSERT_TRUE(add(file, 7, 0.25, "6 6"));
  const Sample s = read().front();
  EXPECT_EQ(s.response, "6 6");
  ASSERT_EQ(s.segments.size(), 2U);
  EXPECT_EQ(s.segments[0].text + "|" + s.segments[1].text, "6| 6");
}

TEST_F(SamplesTest, AFailedResponseHasItsOwnOutcomeAndReason) {
  SamplesFile file(folder_.path(), {1, Bytes(1 << 20)});
  command::Release release;
  release.group = GroupId(7);
  release.outcome = Outcome::Trained;
  GroupPayload payload;
  payload.responses.resize(5);
  for (ResponsePayload& r : payload.responses) {
    r.tokens = {tokenizer_.end()};
    r.logprobs = {-0.5F};
    r.segments = {{PolicyVersion(3), Tokens(1)}};
    r.reward = 2;
  }
  payload.responses[1].reward.reset();
  payload.responses[1].failure = "reward-0: response 1: no reply within 5s";
  payload.responses[2].failure = "reference-0: response 2: token 0: log-prob nan";
  payload.responses[3] = {};
  payload.responses[3].failure = "rollout-0: response 3 ended without a token";
  payload.responses[4].reward.reset();
  ASSERT_TRUE(file.add({release, payload, tokenizer_}, metrics_));
  const auto samples = read();
  ASSERT_EQ(samples.size(), 5U);
  EXPECT_EQ(samples[0].outcome, Outcome::Trained);
  EXPECT_EQ(samples[0].reward, 2);
  EXPECT_EQ(samples[0].reason, "");
  for (const std::size_t failed : {1U, 2U, 3U}) {
    EXPECT_EQ(samples[failed].place, failed);
    EXPECT_EQ(samples[failed].outcome, Outcome::Failed);
    EXPECT_EQ(samples[failed].reason, payload.responses[failed].failure);
    EXPECT_EQ(samples[failed].reward, std::nullopt);
    EXPECT_EQ(samples[failed].age, std::nullopt);
  }
  EXPECT_EQ(samples[3].length, 0U);
  EXPECT_EQ(samples[4].outcome, Outcome::Trained);
  EXPECT_EQ(samples[4].reward, std::nullopt) << "it was not judged";
  const std::string lines = read_file(folder_ / "samples.jsonl").value();
  EXPECT_NE(lines.find("\"reward\":null"), std::string::npos);
}

TEST_F(SamplesTest, ResponsesWithoutARewardComeLastInBothOrders) {
  std::ofstream(folder_ / "samples.jsonl")
      << R"({"step":1,"group":1,"outcome":"failed","reason":"it hangs","reward":null})" << '\n'
      << R"({"step":1,"group":2,"outcome":"trained","reward":-3})" << '\n'
      << R"({"step":1,"group":3,"outcome":"trained","reward":5})" << '\n';
  for (const auto order : {SampleQuery::Order::Worst, SampleQuery::Order::Best}) {
    cli::SamplesOptions options;
    options.query.order = order;
    const std::string text = shown(options);
    EXPECT_NE(text.find("group 1 "), std::string::npos) << text;
    EXPECT_GT(text.find("group 1 "), text.find("group 2 ")) << text;
    EXPECT_GT(text.find("group 1 "), text.find("group 3 ")) << text;
    EXPECT_NE(text.find("it hangs"), std::string::npos);
  }
}

TEST_F(SamplesTest, KeepsTheSameShareOfGroupsEachTime) {
  SamplesFile a(folder_.path(), {0.25, Bytes(1 << 20)}), b(folder_.path(), {0.25, Bytes(1 << 20)});
  int kept = 0;
  for (std::uint64_t group = 0; group < 4000; ++group) {
    EXPECT_EQ(a.keeps(GroupId(group)), b.keeps(GroupId(group)));
    kept += a.keeps(GroupId(group)) ? 1 : 0;
  }
  EXPECT_NEAR(kept, 1000, 100);  // 4000 draws at 0.25: a standard deviation of 27
}

TEST_F(SamplesTest, KeepsAllGroupsAtShareOneAndNoneAtZero) {
  const SamplesFile all(folder_.path(), {1, Bytes(1 << 20)});
  const SamplesFile none(folder_.path(), {0, Bytes(1 << 20)});
  for (std::uint64_t group = 0; group < 1000; ++group) {
    EXPECT_TRUE(all.keeps(GroupId(group)));
    EXPECT_FALSE(none.keeps(GroupId(group)));
  }
}

/// In small steps, a share of 5 % is less than one group.
TEST_F(SamplesTest, EveryStepHasASample) {
  const auto kept_of = [&](double share, std::uint64_t first, std::size_t groups) {
    std::filesystem::remove(folder_ / "samples.jsonl");
    SamplesFile file(folder_.path(), {share, Bytes(1 << 20)});
    train(first, groups);
    for (std::uint64_t g = first; g < first + groups; ++g)
      EXPECT_TRUE(add(file, g, 0, "64", Outcome::Trained));
    std::set<std::uint64_t> kept;
    if (std::filesystem::exists(folder_ / "samples.jsonl")) {
      for (const Sample& sample : read())
        kept.insert(sample.group);
    }
    return kept;
  };
  for (const std::size_t groups : {1U, 2U, 4U, 16U, 64U}) {
    for (std::uint64_t update = 0; update < 20; ++update) {
      const auto some = kept_of(0.05, update * groups, groups);
      EXPECT_FALSE(some.empty()) << groups << " groups, step " << update;
      const auto more = kept_of(0.3, update * groups, groups);
      EXPECT_TRUE(std::ranges::includes(more, some));
    }
    EXPECT_TRUE(kept_of(0, 0, groups).empty());
    EXPECT_EQ(kept_of(1, 0, groups).size(), groups);
  }
}

TEST_F(SamplesTest, KeepsTheNewestWithinTheBudget) {
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

TEST_F(SamplesTest, AResumeRemovesVoidSamples) {
  struct Case {
    std::vector<std::pair<int, int>> times;  // After, until; in seconds.
    std::vector<std::uint64_t> left;
  };
  const Case cases[] = {
      {{}, {1, 2, 3, 4, 5, 6}},
      {{{0, 9}}, {}},                    // From the start.
      {{{3, 9}}, {1, 2, 3}},             // From the third on.
      {{{3, 4}}, {1, 2, 3, 5, 6}},       // Long ago.
      {{{6, 9}}, {1, 2, 3, 4, 5, 6}},    // Nothing follows.
      {{{1, 2}, {4, 5}}, {1, 3, 4, 6}},  // Twice.
      {{{2, 4}, {1, 6}}, {1}},           // Then further back.
      {{{4, 6}, {4, 8}}, {1, 2, 3, 4}},  // Twice to the same.
      {{{-1, 1}}, {2, 3, 4, 5, 6}},      // Only the first.
      {{{5, 6}}, {1, 2, 3, 4, 5}},       // Only the last.
  };
  Time begin{};
  for (const Case& c : cases) {
    const auto at = [&](int second) { return begin + std::chrono::seconds(second); };
    for (const char* name : {"samples.jsonl", "samples.1.jsonl"})
      std::filesystem::remove(folder_ / name);
    std::optional<SamplesFile> file(
        std::in_place, folder_.path(), SamplesConfig{1, Bytes(1 << 20)});
    for (int second = 1; second <= 6; ++second) {
      if (second == 4) {
        std::filesystem::rename(folder_ / "samples.jsonl", folder_ / "samples.1.jsonl");
        file.emplace(folder_.path(), SamplesConfig{1, Bytes(1 << 20)});
      }
      metrics_.feed({0, at(second), event::DeadlineReached{}, {}});
      ASSERT_TRUE(add(*file, static_cast<std::uint64_t>(second), 0, "64"));
    }
    std::vector<VoidTime> times;
    for (const auto& [after, until] : c.times)
      times.push_back({at(after), at(until)});
    ASSERT_TRUE(file->drop(times));
    metrics_.feed({0, at(10), event::DeadlineReached{}, {}});
    ASSERT_TRUE(add(*file, 7, 0, "64"));
    std::vector<std::uint64_t> groups;
    for (const Sample& sample : read())
      groups.push_back(sample.group);
    std::vector<std::uint64_t> expected = c.left;
    expected.push_back(7);
    EXPECT_EQ(groups, expected);
    begin = at(20);
  }
}

TEST_F(SamplesTest, SkipsALineThatIsBeingWritten) {
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
  EXPECT_LT(at("group 2 "), at("group 4 "));
  EXPECT_LT(at("group 4 "), at("group 1 "));
  EXPECT_EQ(at("group 3 "), std::string::npos);
  EXPECT_NE(at("3 of 4 groups"), std::string::npos);
  EXPECT_NE(at("versions 3:1 4:2"), std::string::npos) << text;
}

/// Groups by their rewards; "null": a response that was not judged.
struct Rewards {
  std::uint64_t group;
  std::vector<const char*> of_responses;
};
class GroupsTest : public SamplesTest {
 protected:
  void write(const std::vector<Rewards>& groups) {
    std::ofstream file(folder_ / "samples.jsonl");
    for (const Rewards& g : groups) {
      for (std::size_t i = 0; i < g.of_responses.size(); ++i) {
        file << R"({"step":4,"group":)" << g.group << R"(,"place":)" << i
             << R"(,"outcome":"trained","prompt":"12+34=","answer":"64","response":"r)" << g.group
             << i << R"(","reward":)" << g.of_responses[i] << "}\n";
      }
    }
  }
  std::vector<std::uint64_t> found(SampleQuery query) {
    std::vector<std::uint64_t> groups;
    const auto result = find_samples(folder_.path(), query);
    for (const FoundGroup& g : result->groups)
      groups.push_back(g.responses.front().sample.group);
    return groups;
  }
  static SampleQuery query(SampleQuery::Order order, std::size_t limit = 10) {
    SampleQuery q;
    q.order = order;
    q.limit = limit;
    return q;
  }
};
using Order = SampleQuery::Order;

TEST_F(GroupsTest, AreOrderedByMeanRewardWithUnjudgedOnesLast) {
  write({{1, {"1", "0"}},
         {2, {"null", "null"}},
         {3, {"0", "0"}},
         {4, {"1", "1"}},
         {5, {"null", "0.25"}}});
  EXPECT_EQ(found(query(Order::Worst)), (std::vector<std::uint64_t>{3, 5, 1, 4, 2}));
  EXPECT_EQ(found(query(Order::Best)), (std::vector<std::uint64_t>{4, 1, 5, 3, 2}));
  EXPECT_EQ(found(query(Order::Newest, 2)), (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(found(query(Order::Worst, 1)), (std::vector<std::uint64_t>{3}));
}

TEST_F(GroupsTest, IncludeAllTheirResponses) {
  write({{1, {"1", "0", "1"}}, {2, {"0", "0", "0"}}});
  SampleQuery q = query(Order::Newest);
  q.text = "r12";  // The third response of group 1.
  const auto result = find_samples(folder_.path(), q);
  ASSERT_EQ(result->groups.size(), 1U);
  EXPECT_EQ(result->matches, 1U);
  EXPECT_EQ(result->groups[0].responses.size(), 3U);
  EXPECT_NEAR(result->groups[0].reward.mean(), 2 / 3.0, 1e-9);
  EXPECT_NEAR(result->groups[0].reward.deviation(), std::sqrt(2 / 9.0), 1e-9);
}

TEST_F(GroupsTest, DoNotTreatANullRewardAsZero) {
  write({{7, {"null", "1"}}});
  const auto result = find_samples(folder_.path(), {});
  EXPECT_EQ(result->groups.at(0).responses.at(0).sample.reward, std::nullopt);
  EXPECT_EQ(result->groups.at(0).reward.count(), 1U);
  EXPECT_EQ(result->groups.at(0).reward.mean(), 1);
  const std::string text = shown({});
  EXPECT_NE(text.find("reward 1.00 of 2 responses, 1 of them not scored"), std::string::npos)
      << text;
  EXPECT_NE(text.find("reward -"), std::string::npos) << text;
}

TEST_F(GroupsTest, ShowTheExpectedAnswerAndWhetherItIsReversed) {
  write({{7, {"1"}}});
  const auto text_of = [&](const std::string& yaml) {
    std::ofstream(folder_ / "config.yaml") << yaml;
    return shown({});
  };
  EXPECT_TRUE(find_samples(folder_.path(), {})->groups.size() == 1);
  const std::string reversed = text_of("name: a\n");
  EXPECT_NE(reversed.find("expected  64   digits reversed (task.reverse_answer): 46\n"),
            std::string::npos)
      << reversed;
  const std::string straight = text_of("task: {reverse_answer: false}\n");
  EXPECT_NE(straight.find("expected  64\n"), std::string::npos) << straight;
  std::ofstream(folder_ / "train.jsonl") << R"({"prompt": "a", "answer": "b"})" << '\n';
  const std::string own = text_of("task: {kind: jsonl, path: train.jsonl}\n");
  EXPECT_NE(own.find("expected  64\n"), std::string::npos) << own;
}

TEST_F(SamplesTest, TheCommandFindsTextOrReportsNone) {
  SamplesFile file(folder_.path(), {1, Bytes(1 << 20)});
  ASSERT_TRUE(add(file, 1, 0, "64"));
  ASSERT_TRUE(add(file, 2, 0, "73"));
  cli::SamplesOptions options;
  options.query.text = "73";
  EXPECT_NE(shown(options).find("1 of 1 groups"), std::string::npos);
  EXPECT_EQ(code_, 0);
  options.query.text = "99";
  EXPECT_EQ(
      shown(options),
      "temper: no sample containing \"99\"; found 2 groups, the newest of step 0 (samples.share "
      "sets the share that is kept)\n");
  EXPECT_EQ(code_, 3);
}

TEST_F(SamplesTest, ExplainsWhyARunHasNoSamples) {
  EXPECT_NE(shown({}).find("has no samples.jsonl: it is not a run folder"), std::string::npos);
  EXPECT_EQ(code_, 2);
  std::ofstream(folder_ / "events.log");
  const auto why = [&](const std::string& yaml) {
    std::ofstream(folder_ / "config.yaml") << yaml;
    return shown({});
  };
  EXPECT_NE(why("policy: synthetic\n").find("policy is synthetic"), std::string::npos);
  EXPECT_NE(why("samples: {share: 0}\n").find("`samples.share` is 0"), std::string::npos);
  EXPECT_NE(why("name: a\n").find("none of the 5 % of groups that are saved"), std::string::npos);
}

TEST_F(SamplesTest, ShowsTerminalEscapesAsText) {
  std::ofstream(folder_ / "samples.jsonl")
      << R"({"step":1,"prompt":"a\u001b[2Jb","reward":0})" << '\n';
  EXPECT_NE(shown({}).find("a\\x1b[2Jb"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
