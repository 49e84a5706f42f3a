#include "actors/policy/reference.hpp"
#include "actors/policy/transformer.hpp"
#include "orchestrator/worker/roles/engines.hpp"
#include "rollout/torch/engine.hpp"
#include "trainer/torch/engine.hpp"

#include <algorithm>
#include <thread>

namespace temper::orchestrator {
namespace {

Result<trainer::TrainedPolicy> initial_policy(const actors::RoleConfig& role) {
  TEMPER_TRY(const auto layout, actors::Layout::make(role.model, role.vocabulary.size));
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(role.base_weights, role.model.ignore));
  return trainer::TrainedPolicy::initial(layout, folder, role.seed);
}

}  // namespace

void use_threads(std::size_t cores) {
  // Cards may be simulated; more threads than cores only compete for time.
  const std::size_t there = std::max(1U, std::thread::hardware_concurrency());
  actors::set_compute_threads(static_cast<std::int32_t>(std::min(cores, there)));
}

Result<std::unique_ptr<rollout::Engine>> make_torch_rollout(
    const actors::RoleConfig& role, const rollout::RolloutSettings& settings) {
  rollout::TorchEngineOptions options;
  options.model = role.model;
  options.base = role.base_weights;
  options.vocabulary = role.vocabulary.size;
  options.end_tokens = role.vocabulary.ends;
  options.sampling = settings.sampling;
  options.seed = role.seed;
  options.concurrency = settings.concurrency;
  options.on_new_weights = settings.on_new_weights;
  options.deadline_first = settings.deadline_first;
  return rollout::make_torch_engine(options);
}

Result<std::unique_ptr<trainer::Engine>> make_torch_trainer(
    const actors::RoleConfig& role, const trainer::TrainerSettings& settings) {
  TEMPER_TRY(auto policy, initial_policy(role));
  trainer::TorchEngineOptions options;
  options.model = role.model;
  options.vocabulary = role.vocabulary.size;
  options.algorithm = settings.algorithm;
  options.longest_response = settings.longest_response;
  options.temperature = settings.temperature;
  options.seed = role.seed;
  auto engine = trainer::make_torch_engine(options, std::move(policy));
  if (!role.resume_from.empty())
    TEMPER_TRY_STATUS(engine->load(role.resume_from));
  return engine;
}

/// The folder may be that of a teacher, which has another shape than the policy.
Result<std::unique_ptr<actors::ReferenceEngine>> make_torch_reference(
    const actors::RoleConfig& role, const trainer::TrainerSettings& settings) {
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(role.base_weights, role.model.ignore));
  actors::TorchReferenceOptions options;
  options.model = folder.model();
  options.model.compute_dtype = role.model.compute_dtype;
  TEMPER_TRY(const auto layout, actors::Layout::make(options.model, role.vocabulary.size));
  TEMPER_TRY(auto weights, actors::Weights::from_folder(layout, folder));
  options.vocabulary = role.vocabulary.size;
  options.temperature = settings.temperature;
  options.top_k = settings.algorithm.distillation_top_k;
  return actors::make_torch_reference(options, std::move(weights));
}

}  // namespace temper::orchestrator
