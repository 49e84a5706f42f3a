// What a worker is told at registration.
#include "orchestrator/run/role_configs.hpp"

#include "core/blob.hpp"
#include "rollout/settings.hpp"
#include "trainer/settings.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::EngineKind;
using actors::RoleKind;

ActorSpec engine_slot() {
  ActorSpec spec;
  spec.name = "rollout-0";
  spec.role = RoleKind::Rollout;
  return spec;
}

TEST(RoleConfig, SaysWhatTokensMean) {
  PipelineConfig config;
  const ActorSpec spec = engine_slot();
  const actors::Vocabulary characters = role_config(config, spec, {}).vocabulary;
  EXPECT_EQ(characters.size, 14);
  EXPECT_EQ(characters.end, 1);
  EXPECT_EQ(characters.first, 2);
  EXPECT_EQ(characters.alphabet, "0123456789+=");
  config.task.kind = actors::TaskKind::Jsonl;
  const actors::Vocabulary bytes = role_config(config, spec, {}).vocabulary;
  EXPECT_EQ(bytes.size, 258);
  EXPECT_EQ(bytes.alphabet, "");
}

TEST(RoleConfig, NamesTheFolderOfTheTokenizer) {
  PipelineConfig config;
  config.model.path = "models/gemma";
  const ActorSpec spec = engine_slot();
  StartingPoint start;
  start.base = "run/base";
  EXPECT_EQ(role_config(config, spec, start).vocabulary.folder, "run/base");
  EXPECT_EQ(role_config(config, spec, {}).vocabulary.folder, "models/gemma")
      << "a run with `policy: synthetic` has no copy";
  config.task.tokenizer = actors::TokenizerKind::Bytes;
  EXPECT_EQ(role_config(config, spec, {}).vocabulary.folder, "");
}

TEST(RoleConfig, CarriesTheRolesOwnSettingsAsABlob) {
  PipelineConfig config;
  config.sampling.max_new_tokens = Tokens(77);
  const auto role = role_config(config, engine_slot(), {});
  const auto settings = decode_blob<rollout::RolloutSettings>(role.settings);
  ASSERT_TRUE(settings) << settings.error().context;
  EXPECT_EQ(settings->sampling.max_new_tokens, Tokens(77));
}

TEST(RoleConfig, TellsATrainerEveryColumnOfItsAlgorithm) {
  PipelineConfig config;
  config.algorithm.name = trainer::AlgorithmName::Gspo;
  config.algorithm.clip_high = 0.5;
  ActorSpec spec;
  spec.role = RoleKind::Trainer;
  const auto role = role_config(config, spec, {});
  const auto settings = decode_blob<trainer::TrainerSettings>(role.settings);
  ASSERT_TRUE(settings) << settings.error().context;
  EXPECT_EQ(settings->algorithm.ratio, trainer::RatioLevel::Sequence);
  EXPECT_EQ(settings->algorithm.clip_low, 3e-4);
  EXPECT_EQ(settings->algorithm.clip_high, 0.5);
  EXPECT_TRUE(settings->algorithm.behaviour_weight_mode && settings->algorithm.overlong_buffer);
}

TEST(RoleConfig, GivesTheReferenceAModelOfItsOwn) {
  PipelineConfig config;
  StartingPoint start;
  start.base = "run/base";
  ActorSpec spec = engine_slot();
  spec.role = RoleKind::Reference;
  EXPECT_EQ(role_config(config, spec, start).base_weights, "run/base");
  config.reference.model = "/models/teacher";
  EXPECT_EQ(role_config(config, spec, start).base_weights, "/models/teacher");
  EXPECT_EQ(role_config(config, engine_slot(), start).base_weights, "run/base");
}

TEST(RoleConfig, GivesTheReferencesOfEachTeacherItsModelAndEngine) {
  PipelineConfig config;
  config.reference.engine.use = "all:Reference";
  config.reference.teachers["code"].model = "/models/code";
  config.reference.teachers["math"].model = "/models/math";
  config.reference.teachers["math"].engine.emplace().use = "mine:Reference";
  ActorSpec spec = engine_slot();
  spec.role = RoleKind::Reference;
  for (const auto& [teacher, model, use] : {std::tuple(0U, "/models/code", "all:Reference"),
                                            std::tuple(1U, "/models/math", "mine:Reference")}) {
    spec.teacher = teacher;
    const auto role = role_config(config, spec, {});
    EXPECT_EQ(role.base_weights, model);
    EXPECT_EQ(role.engine.use, use);
  }
}

TEST(RoleConfig, NamesTheEngineOfItsRole) {
  PipelineConfig config;
  config.trainer.engine.kind = EngineKind::Python;
  config.trainer.engine.use = "mine:Trainer";
  EXPECT_EQ(engine_of(config, RoleKind::Trainer).use, "mine:Trainer");
  EXPECT_EQ(engine_of(config, RoleKind::Rollout).kind, EngineKind::Native);
}

TEST(RoleConfig, FunctionsInPythonAreCalledByAWorkerInPython) {
  PipelineConfig config;
  config.verifier.kind = actors::VerifierKind::Python;
  config.reward.engine.python = "/venv/bin/python";
  const actors::EngineConfig engine = engine_of(config, RoleKind::Reward);
  EXPECT_EQ(engine.kind, EngineKind::Python);
  EXPECT_EQ(engine.use, "temper.verifier:Verifier");
  EXPECT_EQ(engine.python, "/venv/bin/python");
}

TEST(RoleConfig, ASumIsJudgedInPythonOnlyIfATermIs) {
  PipelineConfig config;
  config.verifier.kind = actors::VerifierKind::Sum;
  config.verifier.terms["right"].kind = actors::VerifierKind::Numeric;
  EXPECT_EQ(engine_of(config, RoleKind::Reward).kind, EngineKind::Native);
  config.verifier.terms["liked"].kind = actors::VerifierKind::Judge;
  EXPECT_EQ(engine_of(config, RoleKind::Reward).kind, EngineKind::Python);
}

}  // namespace
}  // namespace temper::orchestrator
