#include "orchestrator/pipeline/critic_rules.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

void check_critic(const PipelineConfig& c, const trainer::Algorithm& a, Rules& rules) {
  if (!has_critic(a))
    return;
  rules.require(a.advantage_std != trainer::AdvantageStd::Group,
                {"algorithm.advantage_std", "algorithm.advantage_mean", "algorithm.name"},
                "must be `batch` or `none` with a critic, found `group`");
  rules.require(!a.filter_equal_rewards,
                {"algorithm.filter_equal_rewards", "algorithm.advantage_mean", "algorithm.name"},
                "must be false with a critic: a group with equal rewards has a gradient");
  rules.require(!c.model.lora,
                {"model.lora", "algorithm.advantage_mean", "algorithm.name"},
                "a critic trains all weights of a second network, so an adapter saves little; "
                "remove model.lora, or use an algorithm without a critic, such as `rloo`");
}

}  // namespace temper::orchestrator
