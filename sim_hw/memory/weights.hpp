// Parameters held by one device: the model's share after tensor, expert and pipeline parallelism,
// before ZeRO. On one device the sum is the model's parameter count.
//
// Assumptions: tensor parallelism splits projections; norms, routers and the down projections of
// latent attention are whole on every device; key and value heads are replicated if there are fewer
// than tp; a tied head is held twice if its stage differs from the embedding's. Adapters are split
// as sim_hw/model/adapter.hpp says. Values only.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"

namespace temper::sim_hw {

/// Parameters of one layer on one device.
struct LayerParameters {
  double attention = 0;  ///< Including its norms.
  double dense = 0;      ///< MLP of a dense layer, including its norms.
  double shared = 0;     ///< Norms, router and shared experts of an expert layer.
  double experts = 0;    ///< Routed experts.
};
LayerParameters layer_parameters(const ModelSpec& model, const Layout& layout);
/// The same of its adapters.
LayerParameters layer_parameters(const ModelSpec& model,
                                 const Layout& layout,
                                 const Adapter& adapter);

/// Of an EAGLE draft on one device: a dense layer behind a projection of two hidden states.
/// Embedding and head are the model's.
double eagle_parameters(const ModelSpec& model, const Layout& layout);

/// Parameters of one stage on one device.
struct StageParameters {
  double layers = 0;              ///< Without routed experts.
  double experts = 0;             ///< Routed experts.
  double embedding_and_head = 0;  ///< Including positions and the last norm.

  double dense() const { return layers + embedding_and_head; }
  double total() const { return layers + experts + embedding_and_head; }
  StageParameters& operator+=(const StageParameters& o) {
    layers += o.layers;
    experts += o.experts;
    embedding_and_head += o.embedding_and_head;
    return *this;
  }
};
StageParameters stage_parameters(const ModelSpec& model, const Layout& layout, std::int64_t stage);
StageParameters stage_parameters(const ModelSpec& model,
                                 const Layout& layout,
                                 const Adapter& adapter,
                                 std::int64_t stage);

/// Copies of the weights in the pipeline: DualPipe has one from each end.
inline std::int64_t weight_copies(const TrainShape& shape) {
  return shape.mechanisms.schedule == PipelineSchedule::DualPipe ? 2 : 1;
}
inline std::int64_t mirrored_stage(const Layout& layout, std::int64_t stage) {
  return layout.pp - 1 - stage;
}
/// Parameters of the device of stage `stage`; with DualPipe also those of the mirrored stage.
StageParameters device_parameters(const ModelSpec& model,
                                  const Layout& layout,
                                  const TrainShape& shape,
                                  std::int64_t stage);
/// Those of device_parameters() that a step trains, or else all: the adapter's.
StageParameters trained_parameters(const ModelSpec& model,
                                   const Layout& layout,
                                   const TrainShape& shape,
                                   std::int64_t stage);
/// Those that replicas gather with ZeRO: trained_parameters(), and where it shards weights also the
/// frozen ones.
StageParameters gathered_parameters(const ModelSpec& model,
                                    const Layout& layout,
                                    const TrainShape& shape,
                                    std::int64_t stage);
/// Those of trained_parameters() whose gradients are sums over the devices that split the layer,
/// which all hold them whole: of adapters. Routed experts are split by expert_tp, the others by tp.
StageParameters replicated_parameters(const ModelSpec& model,
                                      const Layout& layout,
                                      const TrainShape& shape,
                                      std::int64_t stage);

/// The first stage whose layers are all of one kind: experts, or dense in a dense model.
std::int64_t first_uniform_stage(const ModelSpec& model, const Layout& layout);
/// Dense layers of stage `stage`; dense layers are the model's first ones.
std::int64_t dense_stage_layers(const ModelSpec& model, const Layout& layout, std::int64_t stage);

}  // namespace temper::sim_hw
