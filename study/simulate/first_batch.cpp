#include "study/simulate/first_batch.hpp"

#include "actors/simulation/lengths.hpp"

namespace temper::study {

std::vector<Tokens> FirstBatch::sequences() const {
  std::vector<Tokens> out;
  out.reserve(responses.size());
  for (std::size_t i = 0; i < responses.size(); ++i)
    out.push_back(prompt_of(i) + responses[i]);
  return out;
}

sim_hw::RolloutLengths FirstBatch::lengths() const {
  std::vector<double> drawn;
  double prompt = 0;
  for (std::size_t i = 0; i < responses.size(); ++i) {
    drawn.push_back(static_cast<double>(responses[i].count()));
    prompt += static_cast<double>(prompt_of(i).count());
  }
  return sim_hw::rollout_lengths(prompt / static_cast<double>(drawn.size()), drawn);
}

FirstBatch draw_first_batch(const orchestrator::PipelineConfig& config,
                            const actors::SimulationConfig& simulation) {
  const actors::Lengths prompts(simulation.prompt, config.seed, actors::kPromptLengths);
  const actors::Lengths responses(simulation.response, config.seed, actors::kResponseLengths);
  FirstBatch batch;
  batch.group_size = static_cast<std::uint64_t>(config.algorithm.responses_per_group);
  const auto groups = static_cast<std::uint64_t>(config.algorithm.groups_per_update);
  for (std::uint64_t g = 0; g < groups; ++g) {
    batch.prompts.push_back(prompts.of(g));
    for (std::uint64_t k = 0; k < batch.group_size; ++k)
      batch.responses.push_back(responses.of(g * batch.group_size + k, g));
  }
  return batch;
}

}  // namespace temper::study
