// The `pretrain` section: supervised training of the base checkpoint on a part of the task before a
// run, so that reinforcement learning starts from a model that sometimes succeeds.
#pragma once

#include "core/describe.hpp"

namespace temper::actors {

struct PretrainConfig {
  double target_accuracy = 0.2;
  std::int64_t problems = 20000;
  std::int32_t batch = 128;
  double learning_rate = 2e-3;
  double label_noise = 0.0;
  std::int32_t max_steps = 4000;
  std::int32_t check_every = 10;
  std::int32_t check_problems = 256;
  bool operator==(const PretrainConfig&) const = default;
};

void describe(auto& v, PretrainConfig& c) {
  v.field(1,
          "target_accuracy",
          c.target_accuracy,
          {.doc = "Stop once this share of sampled answers is right.", .min = 0.0, .max = 1.0});
  v.field(2,
          "problems",
          c.problems,
          {.doc = "Number of training problems, the first of the stream; they are repeated.",
           .min = 1});
  v.field(3, "batch", c.batch, {.doc = "Problems per step.", .min = 1, .max = 1 << 20});
  v.field(4, "learning_rate", c.learning_rate, {.doc = "AdamW step size.", .min = 0.0});
  v.field(5,
          "max_steps",
          c.max_steps,
          {.doc = "Stop after this many steps even below the target accuracy.", .min = 0});
  v.field(6,
          "check_every",
          c.check_every,
          {.doc = "Steps between two measurements of the accuracy.", .min = 1});
  v.field(7,
          "check_problems",
          c.check_problems,
          {.doc = "Problems per measurement.", .min = 1, .max = 1 << 20});
  v.field(8,
          "label_noise",
          c.label_noise,
          {.doc = "Share of answer tokens replaced at random. Keeps the entropy of the model high, "
                  "so that reinforcement learning has something to explore.",
           .min = 0.0,
           .max = 0.9});
}

}  // namespace temper::actors
