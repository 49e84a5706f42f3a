// What a response must be to be trained by a model.
#pragma once

#include "actors/model/model_config.hpp"
#include "trainer/algorithm.hpp"
#include "trainer/engine.hpp"

namespace temper::trainer {

struct SampleLimits {
  Tokens context;
  std::int32_t vocabulary = 0;
};

/// Error InvalidInput: names the response and what is wrong with it.
Status check_sample(const TrainSample& sample,
                    const SampleLimits& limits,
                    const Algorithm& algorithm);

}  // namespace temper::trainer
