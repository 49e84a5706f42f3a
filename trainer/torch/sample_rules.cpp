#include "trainer/torch/sample_rules.hpp"

#include "actors/border/values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::trainer {

Status check_sample(const TrainSample& s, const SampleLimits& limits, const Algorithm& algorithm) {
  const auto bad = [&](std::string_view what) {
    return invalid_input(fmt::format("response {} of group {}: {}", s.id, s.group, what));
  };
  const auto outside = [&](std::int32_t t) { return t < 0 || t >= limits.vocabulary; };
  if (s.prompt.empty() ||
      static_cast<std::int64_t>(s.prompt.size() + s.response.size()) > limits.context.count()) {
    return bad(fmt::format("a prompt of {} and a response of {} tokens exceed the context of {}",
                           s.prompt.size(),
                           s.response.size(),
                           limits.context.count()));
  }
  if (std::any_of(s.prompt.begin(), s.prompt.end(), outside) ||
      std::any_of(s.response.begin(), s.response.end(), outside))
    return bad("it has a token outside the vocabulary");
  if (s.behaviour_logprobs.size() != s.response.size()) {
    return bad(fmt::format("it has {} behaviour log-probs for {} response tokens",
                           s.behaviour_logprobs.size(),
                           s.response.size()));
  }
  if (!s.reference_logprobs.empty() && s.reference_logprobs.size() != s.response.size())
    return bad("the number of reference log-probs differs from the number of response tokens");
  if (s.reference_logprobs.empty() && !s.response.empty() && needs_reference(algorithm))
    return bad(
        "it has no reference log-probs, which algorithm.kl, .distillation and .critic.kl require");
  if (!s.mask.empty() && s.mask.size() != s.response.size())
    return bad(fmt::format(
        "it has a mask of {} entries for {} response tokens", s.mask.size(), s.response.size()));
  if (!s.ages.empty() && s.ages.size() != s.response.size())
    return bad("the versions of its segments do not cover its tokens");
  if (!s.token_rewards.empty() && s.token_rewards.size() != s.response.size())
    return bad("the number of its rewards per token differs from the number of its tokens");
  using actors::LogprobOf;
  for (const Status& possible :
       {actors::check_logprobs(s.behaviour_logprobs, LogprobOf::SampledToken),
        actors::check_logprobs(s.reference_logprobs, LogprobOf::ScoredToken),
        actors::check_top(s.top.ids,
                          s.top.logprobs,
                          s.response.size(),
                          {.vocabulary = limits.vocabulary,
                          .top_k = static_cast<std::size_t>(algorithm.distillation_top_k)}),
        actors::check_reward(s.reward)}) {
    if (!possible)
      return bad(possible.error().context);
  }
  return {};
}

}  // namespace temper::trainer
