#include "orchestrator/run/virtual/simulated_roles.hpp"

#include "core/blob.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/run/role_configs.hpp"
#include "trainer/settings.hpp"

namespace temper::orchestrator {

actors::RoleConfig simulated_role_config(const ResolvedPipeline& pipeline, const ActorSpec& spec) {
  const PipelineConfig& config = pipeline.config;
  actors::RoleConfig role = role_config(config, spec, {});
  role.cards.clear();  // nothing to pin to
  if (pipeline.simulation)
    role.simulation = encode_blob(actor_settings(pipeline, spec));
  if (spec.role == actors::RoleKind::Reward) {  // a reward depends on the group of its response
    role.settings = encode_blob(trainer::TrainerSettings{
        config.algorithm, config.sampling.temperature, config.synthetic.step_time});
  }
  return role;
}

}  // namespace temper::orchestrator
