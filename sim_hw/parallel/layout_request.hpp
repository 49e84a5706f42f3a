// Reads a layout and a training shape from request parameters. No threads.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/request/request.hpp"

namespace temper::sim_hw {

struct TrainRequest {
  Layout layout;
  TrainShape shape;
};

/// Without dp, uses the devices that `cards` leave. One card, the default, stands for as many as
/// tp, pp, cp and dp need. Errors name the wrong divisor; memory is not checked.
Result<Layout> layout_of(const Params& params,
                         const ModelSpec& model,
                         const HardwareSpec& hardware,
                         std::int64_t cards,
                         Recompute recompute);
/// Reads everything about a step except its layout.
Result<TrainShape> train_shape(const Params& params, const ModelSpec& model);
/// Layout and shape, checked by check_layout().
Result<TrainRequest> train_request(const Params& params,
                                   const ModelSpec& model,
                                   const HardwareSpec& hardware,
                                   std::int64_t cards);

}  // namespace temper::sim_hw
