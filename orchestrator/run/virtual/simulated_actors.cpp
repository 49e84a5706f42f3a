#include "orchestrator/run/virtual/simulated_actors.hpp"

#include "actors/simulation/simulated_reference.hpp"
#include "actors/simulation/simulated_reward.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "core/blob.hpp"
#include "rollout/settings.hpp"
#include "rollout/simulated/rollout_actor.hpp"
#include "trainer/settings.hpp"
#include "trainer/simulated/trainer_actor.hpp"

namespace temper::orchestrator {

Result<std::unique_ptr<actors::SimulatedActor>> SimulatedActors::operator()(
    const actors::RoleConfig& role) {
  using Actor = std::unique_ptr<actors::SimulatedActor>;
  TEMPER_TRY(auto settings, decode_blob<actors::SimulationSettings>(role.simulation));
  switch (role.kind) {
    case actors::RoleKind::Rollout: {
      TEMPER_TRY(const auto own, decode_blob<rollout::RolloutSettings>(role.settings));
      if (!publications_ || engine_ != role.simulation) {
        engine_ = role.simulation;
        publications_ = std::make_shared<actors::Publications>();
      }
      return Actor(std::make_unique<rollout::SimulatedRollout>(
          std::move(settings), role.seed, role.version, own.on_new_weights, publications_));
    }
    case actors::RoleKind::Trainer:
      return Actor(std::make_unique<trainer::SimulatedTrainer>(std::move(settings), role.version));
    case actors::RoleKind::Reference:
      return Actor(std::make_unique<actors::SimulatedReference>(std::move(settings)));
    case actors::RoleKind::Reward: {
      TEMPER_TRY(const auto own, decode_blob<trainer::TrainerSettings>(role.settings));
      return Actor(std::make_unique<actors::SimulatedReward>(
          settings, role.seed, static_cast<std::uint64_t>(own.algorithm.responses_per_group)));
    }
  }
  return invalid_input("unknown role");
}

}  // namespace temper::orchestrator
