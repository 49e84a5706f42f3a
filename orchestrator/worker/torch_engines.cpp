#include "actors/policy/reference.hpp"
#include "actors/policy/transformer.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/files.hpp"
#include "orchestrator/worker/roles/engines.hpp"
#include "rollout/torch/engine.hpp"
#include "trainer/torch/engine.hpp"

#include <algorithm>
#include <thread>

namespace temper::orchestrator {
namespace {

std::int32_t vocabulary(const actors::RoleConfig& role) {
  return actors::Tokenizer::for_task(role.task).vocabulary();
}

std::span<const std::byte> bytes_of(const std::string& image) {
  return std::as_bytes(std::span(image));
}

}  // namespace

void use_threads(std::size_t cores) {
  // Cards may be simulated: more of them than there are cores only take each other's time.
  const std::size_t there = std::max(1U, std::thread::hardware_concurrency());
  actors::set_compute_threads(static_cast<std::int32_t>(std::min(cores, there)));
}

Result<std::unique_ptr<rollout::Engine>> make_torch_rollout(
    const actors::RoleConfig& role, const rollout::RolloutSettings& settings) {
  rollout::TorchEngineOptions options;
  options.model = role.model;
  options.vocabulary = vocabulary(role);
  options.end_token = actors::Tokenizer::for_task(role.task).end();
  options.sampling = settings.sampling;
  options.seed = role.seed;
  options.concurrency = settings.concurrency;
  options.on_new_weights = settings.on_new_weights;
  options.oldest_first = settings.deadline_first;
  return rollout::make_torch_engine(options);
}

Result<std::unique_ptr<trainer::Engine>> make_torch_trainer(
    const actors::RoleConfig& role, const trainer::TrainerSettings& settings) {
  TEMPER_TRY(const std::string image, read_file(role.base_weights));
  trainer::TorchEngineOptions options;
  options.model = role.model;
  options.vocabulary = vocabulary(role);
  options.algorithm = settings.algorithm;
  options.longest_response = settings.longest_response;
  options.temperature = settings.temperature;
  options.seed = role.seed;
  TEMPER_TRY(auto engine, trainer::make_torch_engine(options, bytes_of(image)));
  if (!role.resume_from.empty())
    TEMPER_TRY_STATUS(engine->load(role.resume_from));
  return engine;
}

Result<std::unique_ptr<actors::ReferenceEngine>> make_torch_reference(
    const actors::RoleConfig& role, const trainer::TrainerSettings& settings) {
  TEMPER_TRY(const std::string image, read_file(role.base_weights));
  actors::TorchReferenceOptions options;
  options.model = role.model;
  options.vocabulary = vocabulary(role);
  options.temperature = settings.temperature;
  return actors::make_torch_reference(options, bytes_of(image));
}

}  // namespace temper::orchestrator
