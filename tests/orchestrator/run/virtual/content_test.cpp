// The driver of virtual time with a content source: what is asked of it when, and what of its
// answers reaches the log.
#include "orchestrator/run/virtual/content.hpp"

#include "tests/support/virtual_run.hpp"

#include <set>

namespace temper::orchestrator {
namespace {

using testing::small;
using testing::VirtualRun;

/// What a fake source was asked, and what it is to answer. Outlives the run.
struct Script {
  std::map<ResponseId, PolicyVersion> sampled;  ///< Under which version.
  std::map<ResponseId, int> times_sampled;
  std::set<ResponseId> scored, judged;
  std::set<GroupId> released;
  std::map<LeaseId, std::vector<ResponseId>> judging;
  std::map<LeaseId, actors::Certificate> training;
  std::set<PolicyVersion> published{PolicyVersion(0)};
  int updates = 0;

  std::string fail_at;  ///< The call that fails.
  std::set<ResponseId> cannot_be_judged{};
  bool forgets_a_verdict = false;

  Status status(std::string_view call) const {
    if (call == fail_at)
      return Error{ErrorCode::Unavailable, std::string(call) + " went wrong"};
    return {};
  }
};

double real_reward(ResponseId r) {
  return 10 + static_cast<double>(r.value() % 5);
}

class FakeContent final : public ContentSource {
 public:
  explicit FakeContent(Script& script) : s_(script) {}

  Status sample(const Sampling& work) override {
    EXPECT_TRUE(s_.published.contains(work.version)) << "version " << work.version.value();
    for (const ResponseId r : work.responses) {
      EXPECT_EQ(r.value() / 4, work.group.value());
      EXPECT_FALSE(s_.released.contains(work.group));
      s_.sampled[r] = work.version;
      ++s_.times_sampled[r];
    }
    return s_.status("sample");
  }
  Status score(LeaseId, std::span<const ResponseId> responses) override {
    expect_sampled(responses);
    s_.scored.insert(responses.begin(), responses.end());
    return s_.status("score");
  }
  Status judge(LeaseId lease, std::span<const ResponseId> responses) override {
    expect_sampled(responses);
    s_.judging[lease].assign(responses.begin(), responses.end());
    return s_.status("judge");
  }
  Result<actors::Judged> judged(LeaseId lease) override {
    TEMPER_TRY_STATUS(s_.status("judged"));
    const auto node = s_.judging.extract(lease);
    EXPECT_FALSE(node.empty()) << "lease " << lease.value();
    actors::Judged out{lease, {}};
    for (const ResponseId r : node.mapped()) {
      s_.judged.insert(r);
      out.items.push_back({real_reward(r), s_.cannot_be_judged.contains(r) ? "no verdict" : ""});
    }
    if (s_.forgets_a_verdict)
      out.items.pop_back();
    return out;
  }
  Status train(LeaseId lease,
               const actors::Certificate& certificate,
               std::span<const ResponseId> responses) override {
    for (const ResponseId r : responses) {
      EXPECT_TRUE(s_.scored.contains(r) && s_.judged.contains(r)) << "response " << r.value();
      const auto entry =
          std::find_if(certificate.groups.begin(), certificate.groups.end(), [&](const auto& e) {
            return e.group.value() == r.value() / 4;
          });
      EXPECT_EQ(s_.sampled.at(r), entry->dispatched);
    }
    s_.training[lease] = certificate;
    return s_.status("train");
  }
  Result<actors::UpdateMetrics> trained(LeaseId lease) override {
    TEMPER_TRY_STATUS(s_.status("trained"));
    const auto node = s_.training.extract(lease);
    EXPECT_FALSE(node.empty()) << "lease " << lease.value();
    s_.published.insert(next(node.mapped().step));
    actors::UpdateMetrics metrics;
    metrics.loss = 100 + s_.updates++;
    metrics.reward_mean = 0.5;
    metrics.tokens = Tokens(7);
    metrics.micro_batches = 77;
    return metrics;
  }
  void release(GroupId group) override { EXPECT_TRUE(s_.released.insert(group).second); }
  Status serve() override { return s_.status("serve"); }

 private:
  void expect_sampled(std::span<const ResponseId> responses) {
    for (const ResponseId r : responses)
      EXPECT_TRUE(s_.sampled.contains(r)) << "response " << r.value();
  }
  Script& s_;
};

class Content : public VirtualRun {
 protected:
  RunOutcome run_with_content(const PipelineConfig& config) {
    content = std::make_unique<FakeContent>(script);
    return run(config);
  }
  template <class E>
  std::vector<E> events(int run) const {
    std::vector<E> all;
    for (const Record& record : records(run)) {
      if (const auto* e = std::get_if<E>(&record.event))
        all.push_back(*e);
    }
    return all;
  }
  Script script;
};

TEST_F(Content, ItsRewardsAreThoseOfTheRun) {
  const RunOutcome outcome = run_with_content(small());
  ASSERT_TRUE(outcome.finish.ok) << outcome.finish.reason;
  std::map<LeaseId, std::vector<ResponseId>> judging;
  std::size_t rewards = 0;
  for (const Record& record : records(1)) {
    if (const auto* judged = std::get_if<event::Judged>(&record.event)) {
      const auto& responses = judging.at(judged->lease);
      ASSERT_EQ(judged->items.size(), responses.size());
      for (std::size_t i = 0; i < responses.size(); ++i, ++rewards)
        EXPECT_EQ(judged->items[i].reward, real_reward(responses[i]));
    }
    for (const Command& c : record.commands) {
      if (const auto* judge = std::get_if<command::Judge>(&c))
        judging[judge->lease] = judge->responses;
    }
  }
  EXPECT_GE(rewards, 6U * 4 * 4);
}

TEST_F(Content, ItsMetricsAreThoseOfTheUpdateButForTokensAndPasses) {
  ASSERT_TRUE(run_with_content(small()).finish.ok);
  const auto updates = events<event::Trained>(1);
  ASSERT_EQ(updates.size(), 6U);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const actors::UpdateMetrics& m = updates[i].metrics;
    EXPECT_EQ(m.loss, 100 + static_cast<double>(i));
    EXPECT_EQ(m.reward_mean, 0.5);
    EXPECT_GT(m.tokens, Tokens(4 * 4 * 150)) << "the fake trainer's lengths";
    EXPECT_EQ(m.micro_batches, 1);
  }
}

TEST_F(Content, LeavesTimesLengthsAndOrderAsTheyAreWithoutIt) {
  const RunOutcome counted = run(small());
  const RunOutcome twin = run_with_content(small());
  EXPECT_EQ(twin.wall, counted.wall);
  const auto a = records(1);
  const auto b = records(2);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].time, b[i].time);
    EXPECT_EQ(a[i].event.index(), b[i].event.index());
    EXPECT_EQ(a[i].commands.size(), b[i].commands.size());
  }
}

TEST_F(Content, SamplesEveryResponseOnceUnderTheVersionOfItsDispatch) {
  ASSERT_TRUE(run_with_content(small()).finish.ok);
  std::size_t dispatched = 0;
  for (const Record& record : records(1)) {
    for (const Command& c : record.commands) {
      const auto* dispatch = std::get_if<command::Dispatch>(&c);
      for (const ResponseId r : dispatch ? dispatch->responses : std::vector<ResponseId>()) {
        EXPECT_EQ(script.sampled.at(r), dispatch->version);
        EXPECT_EQ(script.times_sampled.at(r), 1);
        ++dispatched;
      }
    }
  }
  EXPECT_EQ(dispatched, script.sampled.size());
  EXPECT_GE(script.released.size(), 24U);
}

TEST_F(Content, OfCardsThatTakeTurnsIsSampledOnceToo) {
  PipelineConfig config = small();
  config.placement.mode = PlacementMode::Colocated;
  config.placement.rollout_cards = 0;
  config.rollout.replicas = 2;
  const RunOutcome outcome = run_with_content(config);
  ASSERT_TRUE(outcome.finish.ok) << outcome.finish.reason;
  for (const auto& [response, times] : script.times_sampled)
    EXPECT_EQ(times, 1) << "response " << response.value();
}

TEST_F(Content, AResponseThatItCannotJudgeFailsAndItsGroupGoesOn) {
  script.cannot_be_judged = {ResponseId(1), ResponseId(9)};
  ASSERT_TRUE(run_with_content(small()).finish.ok);
  EXPECT_EQ(metrics.responses_failed(), 2U);
  EXPECT_EQ(metrics.groups().failed, 0U);
  EXPECT_EQ(audit(1).violations, std::vector<std::string>());
}

TEST_F(Content, ThatFailsEndsTheRunAndSaysWhy) {
  int runs = 0;
  for (const char* call : {"sample", "score", "judge", "judged", "train", "trained", "serve"}) {
    script = {};
    script.fail_at = call;
    const RunOutcome outcome = run_with_content(small());
    EXPECT_FALSE(outcome.finish.ok);
    EXPECT_FALSE(outcome.finish.stopped);
    EXPECT_EQ(outcome.finish.reason, std::string("content: ") + call + " went wrong");
    EXPECT_EQ(audit(++runs).violations, std::vector<std::string>());
  }
}

TEST_F(Content, ThatForgetsAVerdictEndsTheRun) {
  script.forgets_a_verdict = true;
  const RunOutcome outcome = run_with_content(small());
  EXPECT_FALSE(outcome.finish.ok);
  EXPECT_NE(outcome.finish.reason.find("whose content has"), std::string::npos)
      << outcome.finish.reason;
}

}  // namespace
}  // namespace temper::orchestrator
