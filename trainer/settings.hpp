// Settings of a trainer worker, sent to it with its role: RoleConfig::settings.
#pragma once

#include "trainer/algorithm_config.hpp"

namespace temper::trainer {

/// Format of a trainer's checkpoint. C++ and Python trainers read each other's. Format 1 used other
/// tensor names.
inline constexpr std::uint32_t kCheckpointFormat = 2;

/// Images that a trainer holds in shared memory, also while it writes one: the newest, and one that
/// an engine may be about to map. A mapped image stays.
inline constexpr std::size_t kPublishedKept = 2;

struct TrainerSettings {
  AlgorithmConfig algorithm;
  double temperature = 1.0;  ///< Sampling temperature; log-probs are computed at it.
  Duration synthetic_step{0};
  Tokens longest_response{1};  ///< sampling.max_new_tokens.
  Bytes synthetic_weights{0};
};

void describe(auto& v, TrainerSettings& s) {
  v.field(1, "algorithm", s.algorithm, {.doc = "Advantages, loss and optimizer."});
  v.field(2,
          "temperature",
          s.temperature,
          {.doc = "Sampling temperature; log-probs are computed at it."});
  v.field(3, "synthetic_step", s.synthetic_step, {.doc = "Synthetic: time of a training step."});
  v.field(5,
          "synthetic_weights",
          s.synthetic_weights,
          {.doc = "Synthetic: size of the weights of a version."});
  v.field(4,
          "longest_response",
          s.longest_response,
          {.doc = "Largest response length, in tokens (`sampling.max_new_tokens`)."});
}

}  // namespace temper::trainer
