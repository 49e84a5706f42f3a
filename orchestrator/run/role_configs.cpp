#include "orchestrator/run/role_configs.hpp"

#include "actors/task/tokenizer.hpp"
#include "core/blob.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "rollout/settings.hpp"
#include "trainer/algorithm_table.hpp"
#include "trainer/settings.hpp"

namespace temper::orchestrator {
namespace {

/// The reward actor of verifiers that need a worker of the Python package.
constexpr const char* kPythonRewards = "temper.verifier:Verifier";

actors::Vocabulary vocabulary(const PipelineConfig& config, const std::filesystem::path& base) {
  const actors::Tokenizer tokenizer = actors::Tokenizer::for_task(config.task);
  actors::Vocabulary out{config.model.vocabulary.value_or(tokenizer.vocabulary()),
                         tokenizer.pad(),
                         tokenizer.end(),
                         tokenizer.first(),
                         tokenizer.alphabet(),
                         tokenizer.ends(),
                         {}};
  if (!config.model.end_tokens.empty()) {
    out.ends = config.model.end_tokens;
    out.end = out.ends.front();
  }
  if (!config.model.path.empty() && config.task.tokenizer == actors::TokenizerKind::Auto)
    out.folder = base.empty() ? config.model.path : base.string();
  return out;
}

}  // namespace

actors::EngineConfig engine_of(const PipelineConfig& config,
                               actors::RoleKind role,
                               std::optional<std::uint32_t> teacher) {
  switch (role) {
    case actors::RoleKind::Rollout:
      return config.rollout.engine;
    case actors::RoleKind::Trainer:
      return config.trainer.engine;
    case actors::RoleKind::Reference:
      return teacher_of(config, teacher).engine;
    case actors::RoleKind::Reward:
      break;
  }
  actors::EngineConfig engine = config.reward.engine;
  if (engine.kind == actors::EngineKind::Native && actors::needs_python(config.verifier)) {
    engine.kind = actors::EngineKind::Python;
    engine.use = kPythonRewards;
  }
  return engine;
}

actors::RoleConfig role_config(const PipelineConfig& config,
                               const ActorSpec& spec,
                               const StartingPoint& start) {
  actors::RoleConfig role;
  role.kind = spec.role;
  role.policy = config.policy;
  if (!spec.attached) {  // else its launcher has given it cores and cards
    for (const CardId card : spec.cards)
      role.cards.push_back(card.value());
  }
  role.seed = config.seed;
  role.model = config.model;
  role.task = config.task;
  role.verifier = config.verifier;
  role.verifier.terms = actors::terms_of(config.verifier);
  role.base_weights = start.base.string();
  if (spec.role == actors::RoleKind::Reference) {
    if (const Teacher teacher = teacher_of(config, spec.teacher); !teacher.model.empty())
      role.base_weights = teacher.model;
  }
  role.takes_turns = spec.takes_turns;
  role.engine = engine_of(config, spec.role, spec.teacher);
  role.vocabulary = vocabulary(config, start.base);
  role.shared_memory = config.transport.kind == TransportKind::Ipc;
  switch (spec.role) {
    case actors::RoleKind::Rollout:
      role.tensors = start.tensors;
      role.settings = encode_blob(rollout::RolloutSettings{config.sampling,
                                                           spec.concurrency,
                                                           config.synthetic.tokens,
                                                           config.synthetic.step_time,
                                                           config.rollout.on_new_weights,
                                                           config.stragglers.deadline_first,
                                                           config.rollout.agent});
      break;
    case actors::RoleKind::Trainer:
      role.tensors = start.tensors;
      role.resume_from = start.checkpoint.string();
      role.version = start.version;
      [[fallthrough]];
    case actors::RoleKind::Reference:
      role.settings = encode_blob(trainer::TrainerSettings{
          trainer::written_out(config.algorithm, config.sampling.max_new_tokens, config.steps),
          config.sampling.temperature,
          config.synthetic.step_time,
          config.sampling.max_new_tokens,
          config.synthetic.weights});
      break;
    case actors::RoleKind::Reward:
      break;
  }
  return role;
}

}  // namespace temper::orchestrator
