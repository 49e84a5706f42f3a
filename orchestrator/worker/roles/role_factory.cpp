#include "orchestrator/worker/roles/role_factory.hpp"

#include "actors/roles/reference_role.hpp"
#include "actors/roles/reward_role.hpp"
#include "actors/roles/synthetic_reference.hpp"
#include "actors/runtime/process.hpp"
#include "actors/runtime/with_clock.hpp"
#include "core/blob.hpp"
#include "core/manifest.hpp"
#include "orchestrator/worker/roles/engines.hpp"
#include "rollout/gateway/with_agent.hpp"
#include "rollout/rollout_role.hpp"
#include "rollout/synthetic_engine.hpp"
#include "trainer/synthetic_engine.hpp"
#include "trainer/trainer_role.hpp"

namespace temper::orchestrator {
namespace {

using actors::PolicyKind;
using actors::Role;
using actors::RoleConfig;
using actors::WithClock;
using RoleResult = Result<std::unique_ptr<Role>>;

RoleResult make_rollout(const RoleConfig& role, const RealClock& clock) {
  TEMPER_TRY(const auto settings, decode_blob<rollout::RolloutSettings>(role.settings));
  std::unique_ptr<rollout::Engine> engine;
  if (role.policy == PolicyKind::Torch) {
    TEMPER_TRY(engine, make_torch_rollout(role, settings));
  } else {
    engine = std::make_unique<rollout::SyntheticEngine>(
        rollout::SyntheticEngineOptions{
            settings.synthetic_tokens, settings.concurrency, settings.synthetic_step},
        clock);
  }
  TEMPER_TRY(engine, rollout::with_agent(std::move(engine), role, settings, clock));
  return std::unique_ptr<Role>(
      std::make_unique<WithClock<rollout::RolloutRole>>(clock, std::move(engine)));
}

RoleResult make_trainer(const RoleConfig& role, const RealClock& clock) {
  TEMPER_TRY(const auto settings, decode_blob<trainer::TrainerSettings>(role.settings));
  if (!role.resume_from.empty()) {
    if (auto whole = check_folder(role.resume_from); !whole) {
      Error damaged = std::move(whole).error();
      damaged.code = ErrorCode::Unavailable;  // The run can roll back to older checkpoints.
      return damaged;
    }
  }
  std::unique_ptr<trainer::Engine> engine;
  if (role.policy == PolicyKind::Torch) {
    TEMPER_TRY(engine, make_torch_trainer(role, settings));
  } else {
    engine = std::make_unique<trainer::SyntheticEngine>(
        settings.synthetic_step, settings.synthetic_weights, clock);
    if (!role.resume_from.empty())
      TEMPER_TRY_STATUS(engine->load(role.resume_from));
  }
  return std::unique_ptr<Role>(std::make_unique<WithClock<trainer::TrainerRole>>(
      clock,
      std::move(engine),
      role.version,
      role.shared_memory || role.serves_weights ? trainer::Publication::SharedMemory
                                                : trainer::Publication::Chunks));
}

RoleResult make_reference(const RoleConfig& role, const RealClock& clock) {
  TEMPER_TRY(const auto settings, decode_blob<trainer::TrainerSettings>(role.settings));
  const auto make = [role, settings]() -> Result<std::unique_ptr<actors::ReferenceEngine>> {
    if (role.policy == PolicyKind::Torch)
      return make_torch_reference(role, settings);
    return std::unique_ptr<actors::ReferenceEngine>(std::make_unique<actors::SyntheticReference>());
  };
  std::unique_ptr<actors::ReferenceEngine> engine;
  if (!role.takes_turns) {
    TEMPER_TRY(engine, make());
  }
  return std::unique_ptr<Role>(
      std::make_unique<WithClock<actors::ReferenceRole>>(clock, std::move(engine), make));
}

RoleResult make_reward(const RoleConfig& role, const RealClock& clock) {
  TEMPER_TRY(auto verifier, actors::make_verifier(role.verifier));
  const actors::Vocabulary& v = role.vocabulary;
  TEMPER_TRY(auto tokenizer,
             role.model.path.empty()
                 ? actors::Tokenizer::for_task(role.task)
                 : actors::Tokenizer::of_model(role.task, {v.folder, v.size, v.ends}));
  return std::unique_ptr<Role>(std::make_unique<WithClock<actors::RewardRole>>(
      clock, std::move(tokenizer), std::move(verifier)));
}

}  // namespace

RoleResult make_role(const actors::Welcome& welcome) {
  const RoleConfig& role = welcome.role;
  static const std::vector<std::uint32_t> given = actors::usable_cores();  // Before any pinning.
  TEMPER_TRY_STATUS(actors::pin_to_cards(role.cards, given));
  if (role.policy == PolicyKind::Torch) {
    const std::size_t cores =
        role.cards.empty() ? actors::usable_cores().size() : role.cards.size();
    use_threads(std::max<std::size_t>(1, cores));
  }
  const RealClock clock(welcome.epoch_monotonic_ns);
  switch (role.kind) {
    case actors::RoleKind::Rollout:
      return make_rollout(role, clock);
    case actors::RoleKind::Reference:
      return make_reference(role, clock);
    case actors::RoleKind::Reward:
      return make_reward(role, clock);
    case actors::RoleKind::Trainer:
      return make_trainer(role, clock);
  }
  return invalid_input("unknown role");
}

}  // namespace temper::orchestrator
