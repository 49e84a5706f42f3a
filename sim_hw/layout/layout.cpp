#include "sim_hw/layout/layout.hpp"

namespace temper::sim_hw {

TrainShape default_shape(const ModelSpec& model) {
  TrainShape shape;
  if (model.layer_norm && model.activation == Activation::Gelu) {
    shape.attention = AttentionKernel::Unfused;
    shape.dropout = 0.1;
    shape.format = NumberFormat::Fp16;
  }
  return shape;
}

}  // namespace temper::sim_hw
