// Episodes with an engine whose turns are scripted: real agent processes, real requests.
#include "core/files.hpp"
#include "rollout/gateway/engine.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>

namespace temper::test {
namespace {

using actors::FinishReason;
using rollout::Generation;
using rollout::GenerationRequest;
using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kEnd = 1, kDigit0 = 2, kPlus = 12, kEquals = 13;  // Of `characters`.

/// Samples "=" until the context has a token after it; then answers with that token. Holds requests
/// while `held`.
class KnownEngine final : public rollout::Engine {
 public:
  void add(GenerationRequest request) override { queue_.push_back(std::move(request)); }
  Result<rollout::StepResult> step() override {
    rollout::StepResult result{rollout::StepKind::Decode, Tokens(1), {}};
    if (held)
      return result;
    for (const GenerationRequest& r : std::exchange(queue_, {})) {
      const auto told = std::ranges::find(r.prefix, kEquals);
      const bool answers = told != r.prefix.end() && told + 1 != r.prefix.end();
      result.finished.push_back(answers ? turn(r, {*(told + 1), kEnd}) : turn(r, {kEquals}));
      asked.push_back(r);
    }
    return result;
  }
  std::size_t load() const override { return queue_.size(); }
  std::vector<Generation> interrupt() override { return {}; }
  std::vector<Generation> withdraw(std::span<const ResponseId>) override { return {}; }
  void cancel(std::span<const ResponseId> ids) override {
    std::erase_if(queue_, [&](const auto& r) { return std::ranges::count(ids, r.id) > 0; });
  }
  Status stage(PolicyVersion, std::span<const std::byte>) override { return {}; }
  Status commit(PolicyVersion version) override {
    version_ = version;
    return {};
  }
  PolicyVersion version() const override { return version_; }
  Status free_kv() override { return {}; }
  Status allocate_kv() override { return {}; }
  Status free_weights() override { return {}; }
  rollout::EngineMemory memory() const override { return {}; }

  bool held = false;
  std::vector<GenerationRequest> asked;

 private:
  Generation turn(const GenerationRequest& r, const Ids& tokens) const {
    Generation g;
    g.id = r.id;
    g.tokens = tokens;
    g.logprobs.assign(tokens.size(), -0.5F);
    g.segments = {{version_, Tokens(static_cast<std::int64_t>(tokens.size()))}};
    return g;
  }
  std::deque<GenerationRequest> queue_;
  PolicyVersion version_{4};
};

/// Prologue of the agents in these tests. Does not run the __init__.py of the package, which needs
/// other packages.
constexpr const char* kHead = R"(
import os, sys, types
sys.modules["temper"] = types.ModuleType("temper")
sys.modules["temper"].__path__ = [")" TEMPER_SOURCE_DIR
                              R"(/python/src/temper"]
from temper import agent

async def play(episode):
)";

class AgentEngine : public testing::Test {
 protected:
  /// `play`: body of the agent's function, indented by four spaces.
  void start(const std::string& play,
             Duration deadline = std::chrono::seconds(30),
             Tokens context = Tokens(64)) {
    const auto file = folder_ / "agent.py";
    ASSERT_TRUE(write_file_atomically(file, kHead + play + "\nagent.run(play)\n"));
    rollout::AgentEngineOptions options;
    options.agent.command = {"python3", file.string()};
    options.agent.turns = 4;
    options.agent.deadline = deadline;
    options.sampling.max_new_tokens = Tokens(8);
    options.context = context;
    actors::TaskConfig task;
    task.tokenizer = actors::TokenizerKind::Characters;
    auto known = std::make_unique<KnownEngine>();
    known_ = known.get();
    auto made = rollout::make_agent_engine(std::move(known),
                                           options,
                                           actors::Tokenizer::for_task(task),
                                           std::make_shared<const RealClock>(),
                                           Log::discard());
    ASSERT_TRUE(made) << made.error().context;
    engine_ = *std::move(made);
  }
  void add(std::uint64_t id) { engine_->add({ResponseId(id), {kDigit0 + 3, kPlus}}); }
  std::vector<Generation> finish() {
    std::vector<Generation> all;
    step_until([&] { return engine_->load() == 0; }, all);
    return all;
  }
  void step_until(const std::function<bool()>& done, std::vector<Generation>& all) {
    const Time deadline = clock_.now() + std::chrono::seconds(60);
    while (!done() && clock_.now() < deadline) {
      auto step = engine_->step();
      ASSERT_TRUE(step) << step.error().context;
      std::ranges::move(step->finished, std::back_inserter(all));
    }
    ASSERT_TRUE(done());
  }

  const TemporaryFolder folder_;
  const RealClock clock_;
  std::unique_ptr<rollout::AgentEngine> engine_;
  KnownEngine* known_ = nullptr;
};

constexpr const char* kAsksOnce = R"(
    turn = await episode.turn(stop=["="])
    episode.count("tool_calls")
    episode.give("7=")
    answer = await episode.turn(max_tokens=3)
    assert episode.text == "3+7=7", episode.text
    return float(answer.text) / 2
)";

TEST_F(AgentEngine, SaysWhenAllEpisodesWaitForTheirAgents) {
  start(kAsksOnce);
  EXPECT_EQ(engine_->step()->kind, rollout::StepKind::Idle) << "no episode";
  add(1);
  EXPECT_EQ(engine_->step()->kind, rollout::StepKind::Tools) << "the agent starts";
  known_->held = true;
  std::vector<Generation> none;
  step_until([&] { return known_->load() > 0; }, none);
  EXPECT_EQ(engine_->step()->kind, rollout::StepKind::Decode);
}

TEST_F(AgentEngine, CombinesTurnsAndToolOutputInOneRow) {
  start(kAsksOnce);
  for (std::uint64_t id = 0; id < 20; ++id)
    add(id);
  const auto all = finish();
  ASSERT_EQ(all.size(), 20U);
  for (const Generation& g : all) {
    ASSERT_EQ(g.finish, FinishReason::End);
    EXPECT_EQ(g.tokens, (Ids{kEquals, kDigit0 + 7, kEquals, kDigit0 + 7, kEnd}));
    EXPECT_EQ(g.mask, (std::vector<std::uint8_t>{1, 0, 0, 1, 1}));
    EXPECT_EQ(g.rewards.back(), 3.5F);
    EXPECT_EQ(g.segments, (std::vector<actors::Segment>{{PolicyVersion(4), Tokens(5)}}));
  }
  const rollout::AgentFigures& f = engine_->figures();
  EXPECT_EQ(f.episodes, 20U);
  EXPECT_EQ(f.rows.turns, 40U);
  EXPECT_EQ(f.rows.forks, 0U);
  EXPECT_EQ(f.counts.at("tool_calls"), 20);
  EXPECT_EQ(f.reward, 70);
}

TEST_F(AgentEngine, SamplesATurnAsTheContinuationOfTheRow) {
  start(kAsksOnce);
  add(1);
  finish();
  ASSERT_EQ(known_->asked.size(), 2U);
  const GenerationRequest& second = known_->asked[1];
  EXPECT_EQ(second.prompt, (Ids{kDigit0 + 3, kPlus}));
  EXPECT_EQ(second.prefix, (Ids{kEquals, kDigit0 + 7, kEquals}));
  EXPECT_EQ(second.most, Tokens(3));
  EXPECT_EQ(known_->asked[0].stops, (Ids{kEquals}));
}

TEST_F(AgentEngine, KeepsTheVersionOfEachTurn) {
  start(kAsksOnce);
  known_->held = true;
  add(1);
  std::vector<Generation> all;
  step_until([&] { return known_->load() == 1; }, all);
  known_->held = false;
  ASSERT_TRUE(engine_->step());
  ASSERT_TRUE(engine_->commit(PolicyVersion(6)));
  all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(
      all[0].segments,
      (std::vector<actors::Segment>{{PolicyVersion(4), Tokens(1)}, {PolicyVersion(6), Tokens(4)}}));
}

TEST_F(AgentEngine, ServesChatsAndTokensToo) {
  start(R"(
    chat = await episode.request("/v1/chat/completions", {"messages": [{"role": "user", "content": "3+"}], "stop": "="})
    ids = chat["choices"][0]["token_ids"]
    tokens = episode.prompt_token_ids + ids + [7, 13]
    body = {"token_ids": tokens, "sampling_params": {"max_tokens": 4}}
    more = await episode.request("/inference/v1/generate", body)
    return float(len(more["choices"][0]["token_ids"]))
)");
  add(1);
  const auto all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].tokens, (Ids{kEquals, 7, kEquals, 7, kEnd}));
  ASSERT_FALSE(all[0].rewards.empty());
  EXPECT_EQ(all[0].rewards.back(), 2.0F);
}

TEST_F(AgentEngine, ForksTheRowIfTheAgentRewritesHistory) {
  start(R"(
    await episode.turn(stop=["="])
    episode.give("7=")
    await episode.turn()
    episode.text = "3+99=5="
    await episode.turn()
    return 1.0
)");
  add(1);
  const auto all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].mask, (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(engine_->figures().rows.forks, 1U);
  EXPECT_EQ(engine_->figures().rows.dropped, 3U);
}

/// Plays turns, each followed by `given`, until one is refused; the reward is the status of the
/// refusal.
std::string turns_until_refused(const std::string& given) {
  return R"(
    try:
        while True:
            await episode.turn(stop=["="])
            episode.give(")" +
         given + R"(")
    except agent.Refused as why:
        return float(why.status)
)";
}

TEST_F(AgentEngine, RefusesTurnsBeyondTheLimit) {
  start(turns_until_refused(""));
  add(1);
  const auto all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(engine_->figures().rows.turns, 4U);
  ASSERT_FALSE(all[0].rewards.empty());
  EXPECT_EQ(all[0].rewards.back(), 429.0F);
}

TEST_F(AgentEngine, RefusesToolOutputThatFillsTheRow) {
  start(turns_until_refused("1234567"));  // With the "=" before it, the row is full.
  add(1);
  const auto all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].tokens, (Ids{kEquals}));
  EXPECT_EQ(all[0].rewards.back(), 429.0F);
}

TEST_F(AgentEngine, RefusesToolOutputThatFillsTheContext) {
  start(turns_until_refused("12"), std::chrono::seconds(30), Tokens(5));
  add(1);
  const auto all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].tokens, (Ids{kEquals}));
  EXPECT_EQ(all[0].rewards.back(), 429.0F);
}

TEST_F(AgentEngine, FailsOnlyTheEpisodeThatRaises) {
  start(R"(
    turn = await episode.turn(stop=["="])
    if episode.prompt == "3+":
        raise ValueError("no such tool")
    return 1.0
)");
  add(1);
  engine_->add({ResponseId(2), {kDigit0 + 4, kPlus}});
  const auto all = finish();
  ASSERT_EQ(all.size(), 2U);
  for (const Generation& g : all)
    EXPECT_EQ(g.finish, g.id == ResponseId(1) ? FinishReason::Failed : FinishReason::End);
  EXPECT_EQ(engine_->figures().failed, 1U);
}

TEST_F(AgentEngine, RestartsADeadAgentAndFailsItsEpisodes) {
  start(R"(
    if episode.prompt == "3+":
        os._exit(7)
    await episode.turn(stop=["="])
    return 1.0
)");
  add(1);
  auto all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].finish, FinishReason::Failed);
  engine_->add({ResponseId(2), {kDigit0 + 4, kPlus}});
  all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].finish, FinishReason::End);
}

TEST_F(AgentEngine, FailsAnEpisodeAtItsDeadline) {
  start(R"(
    await episode.turn(stop=["="])
    import asyncio
    await asyncio.sleep(3600)
)",
        std::chrono::milliseconds(1500));
  add(1);
  const auto all = finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].finish, FinishReason::Failed);
}

TEST_F(AgentEngine, ReturnsAWithdrawnEpisodeEmptyAndRefusesItsRequest) {
  start(R"(
    try:
        await episode.turn(stop=["="])
    except agent.Refused as why:
        assert why.status == 410, why
    return 1.0
)");
  known_->held = true;
  add(1);
  std::vector<Generation> all;
  step_until([&] { return known_->load() == 1; }, all);
  const auto back = engine_->withdraw(std::array{ResponseId(1)});
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].finish, FinishReason::Interrupted);
  EXPECT_TRUE(back[0].tokens.empty());
  EXPECT_EQ(engine_->load(), 0U);
  EXPECT_EQ(known_->load(), 0U);
  EXPECT_EQ(engine_->figures().begun_anew, 1U);
}

}  // namespace
}  // namespace temper::test
