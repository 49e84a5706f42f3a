// The `algorithm.critic` section: the network that estimates the return of each token, and the
// advantages from its values (gae.hpp). Used with `advantage_mean: critic` only.
#pragma once

#include "core/describe.hpp"

namespace temper::trainer {

struct CriticConfig {
  double gae_lambda = 0.95;
  double discount = 1;
  std::optional<double> value_clip;
  std::optional<double> learning_rate;  ///< Null: that of the policy.
  std::int32_t warm_up_steps = 0;
  double kl = 0;

  bool operator==(const CriticConfig&) const = default;
};

void describe(auto& v, CriticConfig& c) {
  v.field(1,
          "gae_lambda",
          c.gae_lambda,
          {.doc = "Lambda of generalized advantage estimation. 1: return minus value; 0: the "
                  "temporal difference of one token.",
           .min = 0.0,
           .max = 1.0});
  v.field(2,
          "discount",
          c.discount,
          {.doc = "Discount of the return, per token.", .min = 0.0, .max = 1.0});
  v.field(3,
          "value_clip",
          c.value_clip,
          {.doc = "Distance from the value before the step beyond which a value has no gradient "
                  "towards its return. Null: no limit.",
           .min = 0.0});
  v.field(4,
          "learning_rate",
          c.learning_rate,
          {.doc = "Learning rate of the critic. Null: `algorithm.learning_rate`.", .min = 0.0});
  v.field(5,
          "warm_up_steps",
          c.warm_up_steps,
          {.doc = "Number of first steps that train the critic only; the policy does not change.",
           .min = 0,
           .max = 1 << 20});
  v.field(6,
          "kl",
          c.kl,
          {.doc = "KL in the reward: coefficient of log(sampler / reference) of each token, which "
                  "is subtracted from the token's reward. 0: none.",
           .min = 0.0});
}

}  // namespace temper::trainer
