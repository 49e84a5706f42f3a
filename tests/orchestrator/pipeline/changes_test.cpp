#include "orchestrator/pipeline/changes.hpp"

#include "core/yaml.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace temper::orchestrator {
namespace {

std::vector<SettingChange> after(const std::function<void(PipelineConfig&)>& change) {
  const PipelineConfig before;
  PipelineConfig now;
  change(now);
  return changed_settings(before, now);
}

std::string refusal(const std::function<void(PipelineConfig&)>& change) {
  const Status checked = check_changes(after(change));
  return checked ? "" : checked.error().context;
}

TEST(Changes, AreNamedByKeyWithBothValuesButForTheFolder) {
  EXPECT_TRUE(after([](PipelineConfig& c) { c.run_dir = "elsewhere"; }).empty());
  const auto changes = after([](PipelineConfig& c) {
    c.steps = 250;
    c.algorithm.learning_rate = 0.5;
  });
  EXPECT_EQ(changes,
            (std::vector<SettingChange>{{"algorithm.learning_rate", "0.0002", "0.5"},
                                        {"steps", "100", "250"}}));
  EXPECT_EQ(changes_text(changes),
            "  algorithm.learning_rate: 0.0002 -> 0.5\n"
            "  steps: 100 -> 250\n");
}

TEST(Changes, OfWhatOnlyConcernsTheTimeToComeAreAccepted) {
  EXPECT_EQ(refusal([](PipelineConfig& c) {
              c.steps = 7;
              c.algorithm.clip_high = 0.3;
              c.checkpoint.every = 1;
              c.deadlines.train = std::chrono::hours(1);
              c.samples.share = 1;
              c.evaluation.every = 10;
              c.verifier.deadline = std::chrono::seconds(60);
              c.transport.max_restarts = 9;
            }),
            "");
}

TEST(Changes, OfWeightsOfSourcesAreAcceptedButNotOfTheSourcesThemselves) {
  const auto with = [](double weight, std::map<std::uint64_t, double> schedule, const char* path) {
    PipelineConfig c;
    c.task.sources["math"] = {path, std::nullopt, weight, std::move(schedule), {}};
    return c;
  };
  const PipelineConfig before = with(1, {}, "a.jsonl");
  EXPECT_TRUE(check_changes(changed_settings(before, with(3, {}, "a.jsonl"))));
  EXPECT_TRUE(check_changes(changed_settings(before, with(1, {{0, 2}, {9, 1}}, "a.jsonl"))));
  const Status refused = check_changes(changed_settings(before, with(1, {}, "b.jsonl")));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("task.sources.math.path: a.jsonl -> b.jsonl"),
            std::string::npos)
      << refused.error().context;
  EXPECT_EQ(refusal([](PipelineConfig& c) { c.task.set_aside.easy = 0.9; }), "");
  EXPECT_NE(refusal([](PipelineConfig& c) { c.task.shuffle = false; }), "");
}

TEST(Changes, OfWhatIsUnderWayAreAllRefusedWithTheirReasons) {
  const std::string said = refusal([](PipelineConfig& c) {
    c.seed = 2;
    c.steps = 7;
    c.task.digits = 5;
    c.algorithm.groups_per_update = 3;
  });
  EXPECT_NE(said.find("\n  seed: 1 -> 2: all random numbers of the run derive from it"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("\n  task.digits: 3 -> 5: unfinished groups"), std::string::npos) << said;
  EXPECT_NE(said.find("\n  algorithm.groups_per_update: 64 -> 3: "), std::string::npos) << said;
  EXPECT_EQ(said.find("steps"), std::string::npos) << said;
}

TEST(Changes, OfATermFollowTheRulesOfAVerifier) {
  PipelineConfig before;
  before.verifier.kind = actors::VerifierKind::Sum;
  before.verifier.terms["liked"].kind = actors::VerifierKind::Judge;
  const auto refused = [&](auto&& change) {
    PipelineConfig now = before;
    change(now.verifier.terms["liked"]);
    const auto changes = changed_settings(before, now);
    EXPECT_FALSE(changes.empty());
    return !refusal_of(changes.front()).empty();
  };
  EXPECT_FALSE(refused([](auto& term) { term.judge.url = "http://elsewhere/v1"; }));
  EXPECT_FALSE(refused([](auto& term) { term.pool = 9; }));
  EXPECT_TRUE(refused([](auto& term) { term.weight = 2; }));
  EXPECT_TRUE(refused([](auto& term) { term.judge.prompt = "{response}?"; }));
}

TEST(Changes, AnAdapterKeepsItsShapeAndScale) {
  PipelineConfig before;
  before.model.lora = actors::LoraConfig{};
  for (const auto& change : std::vector<std::function<void(PipelineConfig&)>>{
           [](PipelineConfig& c) { c.model.lora->rank = 8; },
           [](PipelineConfig& c) { c.model.lora->alpha = 8; },
           [](PipelineConfig& c) { c.model.lora->targets = {"q_proj"}; },
           [](PipelineConfig& c) { c.model.lora.reset(); }}) {
    PipelineConfig now = before;
    change(now);
    const Status checked = check_changes(changed_settings(before, now));
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().context.find("the checkpoint holds an adapter of this shape and "
                                           "scale"),
              std::string::npos)
        << checked.error().context;
  }
}

TEST(Changes, TheBoundMayBeRaisedOnly) {
  EXPECT_EQ(refusal([](PipelineConfig& c) { c.staleness.bound = 5; }), "");
  EXPECT_NE(refusal([](PipelineConfig& c) { c.staleness.bound = 1; }).find("only be raised"),
            std::string::npos);
}

TEST(Changes, OfTheNumberOfActorsAndTheirCardsAreAccepted) {
  EXPECT_EQ(refusal([](PipelineConfig& c) {
              c.rollout.replicas = 4;
              c.rollout.concurrency = 7;
              c.reward.replicas = 2;
              c.reference.replicas = 3;
              c.placement.cards = 3;
              c.placement.rollout = {CardId(0), CardId(2)};
            }),
            "");
  EXPECT_NE(refusal([](PipelineConfig& c) {
              c.placement.mode = PlacementMode::Colocated;
            }).find("placement.mode"),
            std::string::npos);
}

TEST(Changes, AReferenceDoesNotComeToARunThatHadNoneNorLeaveOneForGood) {
  EXPECT_NE(refusal_of({"reference.replicas", "0", "1"}), "");
  EXPECT_NE(refusal_of({"reference.replicas", "2", "0"}), "");
  EXPECT_EQ(refusal_of({"reference.replicas", "2", "1"}), "");
}

TEST(Changes, ScoresOfUnfinishedGroupsHaveTheTokensThatTheLossNeeds) {
  EXPECT_NE(refusal_of({"algorithm.distillation_top_k", "0", "4"}), "");
  EXPECT_NE(refusal_of({"algorithm.distillation_top_k", "4", "0"}), "");
  EXPECT_EQ(refusal_of({"algorithm.distillation", "1", "0.5"}), "");
}

/// Responses that were handed back may have tokens of the version before.
TEST(Changes, RespondToNewWeightsAsBeforeOrMoreFreely) {
  EXPECT_EQ(refusal_of({"rollout.on_new_weights", "finish", "keep_kv"}), "");
  EXPECT_EQ(refusal_of({"rollout.on_new_weights", "keep_kv", "recompute"}), "");
  EXPECT_NE(refusal_of({"rollout.on_new_weights", "keep_kv", "finish"}), "");
}

TEST(Changes, EveryKeyHasARule) {
  for (const auto& [key, value] : flat_settings(to_yaml(PipelineConfig()))) {
    if (key == "run_dir")
      continue;
    EXPECT_EQ(refusal_of({key, "1", "2"}).find("nothing is known"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace temper::orchestrator
