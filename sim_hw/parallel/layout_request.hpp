// A layout and a training shape from the parameters of a question. No threads.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/request/request.hpp"

namespace temper::sim_hw {

struct TrainQuestion {
  Layout layout;
  TrainShape shape;
};

/// Without dp it takes what `cards` leave; one card, the default, stands for as many as tp, pp, cp
/// and dp ask for. Says which divisor is wrong; memory is not looked at.
Result<Layout> layout_of(const Params& params,
                         const ModelSpec& model,
                         const HardwareSpec& hardware,
                         std::int64_t cards,
                         Recompute recompute);
/// Everything about a step but its layout.
Result<TrainShape> train_shape(const Params& params, const ModelSpec& model);
/// The above and the shape, checked by check_layout().
Result<TrainQuestion> train_question(const Params& params,
                                     const ModelSpec& model,
                                     const HardwareSpec& hardware,
                                     std::int64_t cards);

}  // namespace temper::sim_hw
