#include "orchestrator/run/role_configs.hpp"

#include "actors/runtime/process.hpp"
#include "core/msgpack.hpp"
#include "rollout/settings.hpp"
#include "trainer/settings.hpp"

namespace temper::orchestrator {

actors::RoleConfig role_config(const PipelineConfig& config,
                               const ActorSpec& spec,
                               const StartingPoint& start) {
  actors::RoleConfig role;
  role.kind = spec.role;
  role.policy = config.policy;
  for (const CardId card : spec.cards)
    role.cards.push_back(card.value());
  role.seed = config.seed;
  role.model = config.model;
  role.task = config.task;
  role.verifier = config.verifier;
  role.base_weights = start.base_weights.string();
  role.takes_turns = spec.takes_turns;
  role.shared_memory = config.transport.kind == TransportKind::Ipc;
  switch (spec.role) {
    case actors::RoleKind::Rollout:
      role.settings = encode(rollout::RolloutSettings{config.sampling,
                                                      spec.concurrency,
                                                      config.synthetic.tokens,
                                                      config.synthetic.step_time,
                                                      config.rollout.on_new_weights,
                                                      config.stragglers.deadline_first});
      break;
    case actors::RoleKind::Trainer:
      role.resume_from = start.checkpoint.string();
      role.version = start.version;
      [[fallthrough]];
    case actors::RoleKind::Reference:
      role.settings = encode(trainer::TrainerSettings{config.algorithm,
                                                      config.sampling.temperature,
                                                      config.synthetic.step_time,
                                                      config.sampling.max_new_tokens});
      break;
    case actors::RoleKind::Reward:
      break;
  }
  return role;
}

}  // namespace temper::orchestrator
