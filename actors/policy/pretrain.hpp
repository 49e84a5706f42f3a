// Making the base checkpoint: next-token training on the answers of a part of the task.
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
  double temperature = 1.0;  ///< Of the answers sampled to measure the accuracy.
  std::uint64_t seed = 0;
};

struct PretrainProgress {
  std::int32_t step = 0;
  double loss = 0;      ///< Mean over answer tokens, natural log.
  double accuracy = 0;  ///< Share of sampled answers that are right.
};

struct PretrainResult {
  Weights weights;
  PretrainProgress last;
};

/// Stops at the target accuracy or after max_steps. The same options give the same weights on the
/// same machine. Errors: a task that cannot be read, a problem longer than the context.
Result<PretrainResult> pretrain(const PretrainOptions& options,
                                const std::function<void(const PretrainProgress&)>& progress);

/// A file name for the checkpoint of these options: equal options, equal key.
std::string pretrain_key(const PretrainOptions& options);

/// Share of problems whose sampled (temperature > 0) or most likely (temperature 0) answer is
/// right. `held_out` takes the held-out problems, else those of training from `first` on.
struct AccuracyQuery {
  enum class From { Training, HeldOut };
  From from = From::HeldOut;
  std::uint64_t first = 0;
  std::int32_t problems = 256;
  double temperature = 0;
};
Result<double> measure_accuracy(const PretrainOptions& options,
                                std::string_view image,
                                const AccuracyQuery& query);

}  // namespace temper::actors
