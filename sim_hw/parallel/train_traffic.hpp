// Bytes that the devices of a layout send each other in one step, by the fabric level that they
// cross: the exchanges that train_iteration_time() and forward_iteration_seconds() price (named in
// layer_cost.hpp), times their number in a step.
//
// Per layer and micro-batch, on each device:
//   tensor   forward: a reduction per region (with sequence parallelism a gather and a scatter);
//            backward the same, with sequence parallelism one more gather, of saved inputs
//   expert   dispatch and combine, forward and backward
//   context  cp - 1 blocks of keys and values forward, of them and their gradients backward
//   full recompute repeats the forward exchanges
// Per micro-batch: 2 (p v - 1) pipeline boundaries (a forward pass: p v - 1), each crossed by every
// device of a stage; the head's reductions on the last stage. Per step: gradients reduced and
// weights gathered among replicas, by the ZeRO stage; with an adapter those of its parameters, and
// the sum over tensor parallelism of the gradients that every device of it has.
// Assumed: as train_iteration.hpp; means over devices where stages differ. Every byte counts once,
// where it is sent, whether time hides it or not. Doubles are bytes.
#pragma once

#include "sim_hw/parallel/layer_cost.hpp"

namespace temper::sim_hw {

/// Bytes that all devices together send in a step.
struct StepTraffic {
  LevelBytes tensor, expert, context, pipeline, data;

  LevelBytes total() const;
};

/// Requires: check_layout() accepts the layout.
StepTraffic train_traffic(const ModelSpec& model,
                          const Device& device,
                          const Fabric& fabric,
                          const Layout& layout,
                          const TrainShape& shape);
/// Bytes of a forward pass only, without the head's reductions, which the pass does not price.
StepTraffic forward_traffic(const ModelSpec& model,
                            const Device& device,
                            const Fabric& fabric,
                            const Layout& layout,
                            const TrainShape& shape);

}  // namespace temper::sim_hw
