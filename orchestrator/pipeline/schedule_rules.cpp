#include "orchestrator/pipeline/schedule_rules.hpp"

#include "trainer/algorithm_table.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

void check_schedule(const PipelineConfig& c, Rules& rules) {
  const trainer::LearningRateSchedule& s = c.algorithm.learning_rate_schedule;
  const std::string section = "algorithm.learning_rate_schedule.";
  if (s.decay == trainer::Decay::None) {
    rules.require(!s.decay_steps && s.end == 0,
                  {section + (s.decay_steps ? "decay_steps" : "end"), section + "decay"},
                  "requires `decay: linear` or `cosine`, found none");
    return;
  }
  const std::int64_t steps = s.decay_steps.value_or(static_cast<std::int64_t>(c.steps));
  const bool critic = has_critic(trainer::resolve(c.algorithm, c.sampling.max_new_tokens));
  const std::int64_t untrained = critic ? c.algorithm.critic.warm_up_steps : 0;
  rules.require(
      steps >= untrained + s.warm_up_steps,
      {section + "warm_up_steps", s.decay_steps ? section + "decay_steps" : std::string("steps")},
      fmt::format("must be at most the step at which the decay ends ({}), found {}{}",
                  steps,
                  s.warm_up_steps,
                  untrained > 0
                      ? fmt::format(" after the {} steps of critic.warm_up_steps", untrained)
                      : std::string()));
}

}  // namespace temper::orchestrator
