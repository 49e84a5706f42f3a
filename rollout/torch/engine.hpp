// The rollout engine that runs the real policy: continuous batching over a fixed number of slots.
//
// A step is either a prefill (waiting responses move into free slots; a prompt that several of them
// share is computed once and its keys and values copied) or a decode (one token for every running
// response). Work per step is proportional to the responses that run, not to the slots.
//
// With OnNewWeights::Recompute the steps after a commit are prefills of what runs, until every
// cache is of the new weights. With KeepKv a token sampled after a commit is of a mixture: the new
// weights over keys and values of the old ones; its recorded log-prob is the one it was sampled
// with.
#pragma once

#include "actors/model/model_config.hpp"
#include "rollout/engine.hpp"

#include <cstdint>
#include <memory>

namespace temper::rollout {

struct TorchEngineOptions {
  actors::ModelConfig model;
  std::int32_t vocabulary = 0;
  std::vector<std::int32_t> end_tokens{1};
  SamplingConfig sampling;
  std::uint64_t seed = 0;
  std::int32_t concurrency = 64;  ///< Slots: responses that run at once.
  Tokens prefill_tokens{2048};    ///< Largest prefill of one step; one prompt may exceed it.
  OnNewWeights on_new_weights = OnNewWeights::KeepKv;
  /// Responses enter in the order of their ids, which is that of their groups and so about that of
  /// their deadlines; else in the order of their arrival.
  bool deadline_first = false;
};

/// The engine has no weights until the first stage() and commit().
/// Errors: a model that cannot be; max_new_tokens that leave no room for a prompt.
Result<std::unique_ptr<Engine>> make_torch_engine(const TorchEngineOptions& options);

}  // namespace temper::rollout
