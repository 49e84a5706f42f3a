#include "sim_hw/iteration/cluster.hpp"

#include "sim_hw/layout/stages.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/model/parameters.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {
namespace {

double prefill_replica(const Device& d,
                       const Fabric& fabric,
                       const StepModel& m,
                       const RolloutLayout& layout,
                       const ClusterWork& work) {
  const double sequences = std::ceil(work.sequences() / layout.dp);
  const double tokens = sequences * work.prompt;
  SumSink sum;
  visit_layers(d, m, {tokens, tokens * layout.dp, m.experts, false}, Pass::Forward, sum);
  visit_attention(d, m, sequences, work.prompt, Pass::Forward, sum);
  visit_rollout_exchanges(fabric, m, layout, tokens, sum);
  return sum.seconds;
}

/// Every device receives every weight once, over the port that it shares with its neighbors.
double gather_whole(const ModelSpec& model, const Fabric& fabric, std::int64_t devices) {
  const double bytes = 2 * as_double(count_parameters(model).total());
  return all_gather_seconds(fabric, {devices, 1}, bytes / as_double(devices));
}

double offload_and_back(const ModelSpec& model,
                        const Fabric& fabric,
                        const Layout& layout,
                        const TrainShape& shape) {
  const Ledger ledger = worst_train_ledger(model, layout, shape);
  const double bytes = ledger.weights + ledger.optimizer;
  return to_device_seconds(fabric, bytes) + from_device_seconds(fabric, bytes);
}

}  // namespace

double forward_iteration_seconds(const ModelSpec& model,
                                 const Device& device,
                                 const Fabric& fabric,
                                 const Layout& layout,
                                 const TrainShape& shape) {
  const StepInputs in{model, device, fabric, layout, shape};
  const double dense = model.dense_layers() > 0 ? layer_cost(in, LayerKind::Dense).forward : 0;
  const double expert = model.moe ? layer_cost(in, LayerKind::Experts).forward : 0;
  const double columns = as_double(model.vocabulary) / in.tp();
  const double head =
      gemm_seconds(device, Heat::Sustained, in.tokens(), columns, in.hidden()) +
      elementwise_seconds(
          device, kLogSoftmaxKernels, in.tokens() * columns * device.k.log_softmax_bytes);
  double slowest = 0;
  double sum = 0;
  std::int64_t dense_left = model.dense_layers();
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    const std::int64_t layers = stage_layers(model, layout, stage);
    const std::int64_t plain = std::min(dense_left, layers);
    dense_left -= plain;
    double seconds = as_double(plain) * dense + as_double(layers - plain) * expert;
    if (stage + 1 == layout.pp)
      seconds += head;
    slowest = std::max(slowest, seconds);
    sum += seconds;
  }
  return as_double(shape.micro_batches(layout)) * slowest + sum - slowest;
}

TrainShape rl_train_shape(const ModelSpec& model, const ClusterWork& work, const Layout& layout) {
  TrainShape shape = default_shape(model);
  shape.micro_batch = 1;
  shape.global_batch = static_cast<std::int64_t>(work.sequences());
  // Padded so that tensor and context parallelism divide it.
  const std::int64_t cut = layout.tp * layout.cp;
  const auto seq = static_cast<std::int64_t>(std::ceil(work.prompt + work.response));
  shape.seq = (seq + cut - 1) / cut * cut;
  shape.recompute = Recompute::Full;
  shape.states.gradient = 2;
  return shape;
}

ClusterIteration cluster_iteration(const ModelSpec& model,
                                   const HardwareSpec& hardware,
                                   const ClusterPlan& plan,
                                   const ClusterWork& work) {
  const RolloutLayout& rollout = plan.rollout;
  const Layout& layout = plan.training;
  const Device d = make_device(hardware);
  const Fabric fabric = make_fabric(hardware);
  const StepModel m = make_step_model(model, rollout.tp, rollout.ep);
  ModelSpec trained = model;
  trained.mtp_layers = 0;
  const TrainShape shape = rl_train_shape(model, work, layout);

  // On separate cards the weights cross from the trainer's devices to the rollout's.
  const auto rollout_devices = static_cast<std::int64_t>(rollout.tp * rollout.dp);
  const std::int64_t devices =
      plan.cards == Cards::Shared ? layout.devices() : layout.devices() + rollout_devices;
  ClusterIteration out;
  out.reshard = gather_whole(model, fabric, devices);
  out.prefill = prefill_replica(d, fabric, m, rollout, work);
  const double sequences = std::ceil(work.sequences() / rollout.dp);
  const ReplicaShape step{sequences, sequences, work.prompt + work.response / 2};
  const double host = plan.tuning == HostTuning::None ? d.k.host_untuned_step : 0;
  out.decode = work.response * (parallel_decode_seconds(d, fabric, m, rollout, step) + host);
  out.reference = forward_iteration_seconds(trained, d, fabric, layout, shape);
  out.reward = work.tokens() * d.k.reward_token;
  out.update = train_iteration_time(trained, d, fabric, layout, shape).total();
  if (plan.cards == Cards::Shared)
    out.offload = offload_and_back(trained, fabric, layout, shape);
  return out;
}

}  // namespace temper::sim_hw
