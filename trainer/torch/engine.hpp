// The trainer engine for the real policy: minibatches of complete groups; the algorithm is a row of
// algorithm_table.hpp. If its objective needs the proximal policy, the log-probs of all minibatches
// but the first are computed in advance, before the first optimizer step.
//
// Log-probs are computed at the sampling temperature. With top_p < 1, the behaviour log-probs are
// those of the truncated and renormalized distribution, while the trained ones are over the whole
// vocabulary, so the importance ratio starts at the mass of the nucleus instead of 1, and the step
// also pulls the policy towards its own nucleus. Train with top_p = 1 unless this is intended.
#pragma once

#include "actors/model/model_config.hpp"
#include "trainer/algorithm_config.hpp"
#include "trainer/engine.hpp"
#include "trainer/torch/trained_policy.hpp"

#include <cstdint>
#include <memory>

namespace temper::trainer {

struct TorchEngineOptions {
  actors::ModelConfig model;
  std::int32_t vocabulary = 0;
  AlgorithmConfig algorithm;
  Tokens longest_response{1};  ///< sampling.max_new_tokens.
  double temperature = 1.0;
  std::uint64_t seed = 0;  ///< For the order of groups within a step.
};

/// Starts from `policy` with a fresh optimizer. Requires: it fits this model.
std::unique_ptr<Engine> make_torch_engine(const TorchEngineOptions& options, TrainedPolicy policy);

}  // namespace temper::trainer
