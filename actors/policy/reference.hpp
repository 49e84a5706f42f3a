// The built-in reference engine: log-probs of responses under fixed weights, at the run's
// temperature.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/policy/weights.hpp"
#include "actors/roles/reference_engine.hpp"

#include <memory>

namespace temper::actors {

struct TorchReferenceOptions {
  ModelConfig model;
  std::int32_t vocabulary = 0;
  double temperature = 1.0;
  Tokens micro_batch_tokens{4096};  ///< Most rows per forward pass.
  std::int32_t top_k = 0;           ///< Tokens of ReferenceScores::top at each response token.
};

/// Requires: the weights belong to this model.
std::unique_ptr<ReferenceEngine> make_torch_reference(const TorchReferenceOptions& options,
                                                      Weights weights);

}  // namespace temper::actors
