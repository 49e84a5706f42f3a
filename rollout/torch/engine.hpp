// The rollout engine for the real policy: continuous batching over a fixed number of slots.
//
// A step is either a prefill (waiting responses enter free slots; a prompt that several of them
// share is computed once, and its KV cache is copied) or a decode (one token for every running
// response). The work of a step is proportional to the running responses, not to the slots.
//
// With OnNewWeights::Recompute, the steps after a commit are prefills of the running responses,
// until every cache has the new weights. With KeepKv, a token sampled after a commit comes from a
// mixture: the new weights on keys and values of the old ones; the recorded log-prob is that of the
// sampling. With Finish, the engine holds every version that still has responses, and a decode is
// one pass for each version, or one for all of them if versions are adapters.
#pragma once

#include "actors/model/model_config.hpp"
#include "rollout/engine.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace temper::rollout {

struct TorchEngineOptions {
  actors::ModelConfig model;
  std::filesystem::path base;  ///< Folder of the base model, read only with `model.lora`.
  std::int32_t vocabulary = 0;
  std::vector<std::int32_t> end_tokens{1};
  SamplingConfig sampling;
  std::uint64_t seed = 0;
  std::int32_t concurrency = 64;  ///< Slots: largest number of running responses.
  Tokens prefill_tokens{2048};    ///< Limit of one prefill step; a single prompt may exceed it.
  OnNewWeights on_new_weights = OnNewWeights::KeepKv;
  /// Responses enter in the order of their ids, which is that of their groups and approximately
  /// that of their deadlines; otherwise in the order of arrival.
  bool deadline_first = false;
};

/// The engine has no weights until the first stage() and commit(). Errors: an invalid model or
/// adapter; max_new_tokens that leaves no space for a prompt.
Result<std::unique_ptr<Engine>> make_torch_engine(const TorchEngineOptions& options);

}  // namespace temper::rollout
