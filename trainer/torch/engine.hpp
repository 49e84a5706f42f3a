// The trainer engine that trains the real policy: minibatches of whole groups, the algorithm a
// row of algorithm_table.hpp. Where its objective needs the proximal policy, log-probs of all
// minibatches but the first are computed once more, before the first step.
//
// Log-probs are computed at the temperature of sampling. With top_p < 1 the behaviour's log-probs
// are those of the cut and renormalised distribution while the trained ones are over the whole
// vocabulary, so the ratio starts at the mass of the nucleus instead of 1: the update then also
// pulls the policy towards its own nucleus. Train with top_p = 1 unless that is wanted.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/policy/weights.hpp"
#include "trainer/algorithm_config.hpp"
#include "trainer/engine.hpp"

#include <cstdint>
#include <memory>

namespace temper::trainer {

struct TorchEngineOptions {
  actors::ModelConfig model;
  std::int32_t vocabulary = 0;
  AlgorithmConfig algorithm;
  Tokens longest_response{1};  ///< That sampling allows.
  double temperature = 1.0;
  std::uint64_t seed = 0;  ///< Of the order of groups within an update.
};

/// Starts from `weights` with a fresh optimizer. Requires: they are of this model.
std::unique_ptr<Engine> make_torch_engine(const TorchEngineOptions& options,
                                          actors::Weights weights);

}  // namespace temper::trainer
