// Pretraining of the base checkpoint: next-token training on the answers of a part of the task.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/model/pretrain_config.hpp"
#include "actors/policy/weights.hpp"
#include "actors/task/task_config.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace temper::actors {

struct PretrainOptions {
  ModelConfig model;
  TaskConfig task;
  PretrainConfig pretrain;
  double temperature = 1.0;  ///< Temperature for sampling answers when measuring the accuracy.
  std::uint64_t seed = 0;
};

struct PretrainProgress {
  std::int32_t step = 0;
  double loss = 0;      ///< Mean cross-entropy over answer tokens, natural logarithm.
  double accuracy = 0;  ///< Share of sampled answers that are correct.
};

struct PretrainResult {
  Weights weights;
  PretrainProgress last;
};

/// Trains until the target accuracy or max_steps is reached. The same options give the same weights
/// on the same machine. Errors: a task that cannot be read; a problem longer than the context.
Result<PretrainResult> pretrain(const PretrainOptions& options,
                                const std::function<void(const PretrainProgress&)>& progress);

/// Measures the share of problems whose sampled (temperature > 0) or most likely (temperature 0)
/// answer is correct, on held-out problems or on training problems from `first` on.
struct AccuracyQuery {
  enum class Split { Training, HeldOut };
  Split split = Split::HeldOut;
  std::uint64_t first = 0;
  std::int32_t problems = 256;
  double temperature = 0;
};
/// `image`: the weights as safetensors. Errors: a task or model that is invalid or cannot be read;
/// Corrupt for a damaged image; InvalidInput if the task has no held-out problems.
Result<double> measure_accuracy(const PretrainOptions& options,
                                std::string_view image,
                                const AccuracyQuery& query);

}  // namespace temper::actors
