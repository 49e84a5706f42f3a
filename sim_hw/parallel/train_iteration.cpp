#include "sim_hw/parallel/train_iteration.hpp"

#include "sim_hw/layout/stages.hpp"
#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/flops.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/operators/operators.hpp"

#include <algorithm>
#include <optional>

namespace temper::sim_hw {

namespace {

/// Look-up and its gradient: reads and writes 2 bytes per element in each pass, and dropout. A
/// frozen one has no gradient.
double embedding_seconds(const StepInputs& in) {
  if (in.model.vocabulary == 0)
    return 0;
  const double elements = in.tokens() / in.sequence_cut() * in.hidden();
  return elementwise_seconds(in.device, 4, elements * (in.shape.dropout > 0 ? 8 + 12 : 8)) /
         (in.shape.adapter ? 2 : 1);
}

/// Logits, loss and their gradients, with the vocabulary split by tensor parallelism. The loss
/// moves log_softmax_bytes per logit forward and 4 + 2 + 2 backward. A frozen head has no weight
/// gradient.
StageTime head_time(const StepInputs& in) {
  StageTime time;
  if (in.model.vocabulary == 0)
    return time;
  const double columns = as_double(in.model.vocabulary) / in.tp();
  const double backward =
      in.shape.adapter
          ? in.device.k.matmul_backward *
                gemm_seconds(in.device, Heat::Sustained, in.tokens(), in.hidden(), columns)
          : gemm_backward_seconds(in.device, Heat::Sustained, in.tokens(), columns, in.hidden());
  time.head =
      gemm_seconds(in.device, Heat::Sustained, in.tokens(), columns, in.hidden(), MatrixFormat{}) +
      backward +
      elementwise_seconds(
          in.device, 8, in.tokens() * columns * (in.device.k.log_softmax_bytes + 8));
  if (in.layout.tp > 1) {  // Largest logit, sum of exponentials, target logit; input gradient.
    const Group group{in.layout.tp, 1};
    time.tensor_parallel = 3 * all_reduce_seconds(in.fabric, group, 4 * in.tokens()) +
                           all_reduce_seconds(in.fabric, group, in.plane_bytes());
  }
  return time;
}

/// One pipeline boundary, one direction.
double transfer_seconds(const StepInputs& in) {
  if (in.layout.pp == 1)
    return 0;
  const double part = in.plane_bytes() / in.tp();
  double sum = p2p_seconds(in.fabric, in.layout.stage_devices(), part);
  if (in.layout.tp > 1 && in.layout.sequence_parallel == SequenceParallel::Off)
    sum += all_gather_seconds(in.fabric, {in.layout.tp, 1}, part);
  return sum;
}

/// Time of a stage's micro-batch; `hidden` of it is exposed if no other pass overlaps.
using Stage = LayerCost;

/// Costs that the stages share, computed once.
struct SharedCosts {
  LayerCost dense;
  LayerCost experts;
  StageTime head;
  double embedding = 0;
  double transfer = 0;
  double accumulation = 0;  ///< Seconds per parameter and micro-batch.
};

SharedCosts make_parts(const StepInputs& in) {
  SharedCosts parts;
  if (in.model.dense_layers() > 0)
    parts.dense = layer_cost(in, LayerKind::Dense);
  if (in.model.moe)
    parts.experts = layer_cost(in, LayerKind::Experts);
  parts.head = head_time(in);
  parts.embedding = embedding_seconds(in);
  parts.transfer = transfer_seconds(in);
  // The weight gradient GEMM writes 2 bytes itself; later micro-batches also read the sum.
  const double gradient = in.shape.states.gradient;
  const double bytes = in.shape.micro_batches(in.layout) > 1 ? 2 * gradient - 2 : gradient - 2;
  parts.accumulation = bytes / in.device.bandwidth;
  return parts;
}

/// Parameters of a stage that have gradients, without those of a mirrored stage.
StageParameters gradients_of(const StepInputs& in, std::int64_t stage) {
  const std::optional<Adapter>& adapter = in.shape.adapter;
  return adapter ? stage_parameters(in.model, in.layout, *adapter, stage)
                 : stage_parameters(in.model, in.layout, stage);
}

Stage stage_time(const StepInputs& in, const SharedCosts& parts, std::int64_t stage) {
  const double layers = as_double(stage_layers(in.model, in.layout, stage));
  const double dense = as_double(dense_stage_layers(in.model, in.layout, stage));
  const StageModules modules = stage_modules(in.model, in.layout, stage);
  Stage out;
  const double routed = in.model.moe ? layers - dense + as_double(modules.mtp) : 0;
  const double plain = in.model.moe ? dense : layers + as_double(modules.mtp);
  out.add(parts.dense, plain).add(parts.experts, routed);
  if (stage == 0)
    out.time.head += parts.embedding;
  if (modules.heads > 0)
    out.time.add(parts.head, as_double(modules.heads));
  out.time.accumulation = parts.accumulation * gradients_of(in, stage).total();
  out.time.pipeline_transfer = 2 * as_double(in.layout.vpp) * parts.transfer;
  return out;
}

/// Sum of a micro-batch's time over all stages.
double sum_of_stages(const StepInputs& in,
                     const SharedCosts& parts,
                     const Stage& first,
                     const Stage& last) {
  if (in.layout.pp == 1)
    return first.time.total();
  double sum = first.time.total() + last.time.total();
  if (in.layout.pp == 2)
    return sum;
  // The stages between hold the remaining layers; parameters from the mean of the first stages.
  const double layers = as_double(in.model.layers - stage_layers(in.model, in.layout, 0) -
                                  stage_layers(in.model, in.layout, in.layout.pp - 1));
  const double dense =
      in.model.moe
          ? as_double(in.model.dense_layers() - dense_stage_layers(in.model, in.layout, 0) -
                      dense_stage_layers(in.model, in.layout, in.layout.pp - 1))
          : layers;
  const std::optional<Adapter>& adapter = in.shape.adapter;
  const LayerParameters weights = adapter ? layer_parameters(in.model, in.layout, *adapter)
                                          : layer_parameters(in.model, in.layout);
  sum += dense * parts.dense.time.total() + (layers - dense) * parts.experts.time.total();
  sum += parts.accumulation * (layers * weights.attention + dense * weights.dense +
                               (layers - dense) * (weights.shared + weights.experts));
  const std::int64_t before_last = in.layout.pp - 2;
  if (const StageModules modules = stage_modules(in.model, in.layout, before_last);
      modules.heads > 0) {
    sum += as_double(modules.heads) * parts.head.total() +
           parts.accumulation * gradients_of(in, before_last).embedding_and_head;
  }
  return sum + as_double(in.layout.pp - 2) * first.time.pipeline_transfer;
}

struct SlowestDevice {
  Stage work;
  std::int64_t where = 0;
};

/// The slowest device: stage 0 embeds, the last stage has modules, the stages between have the most
/// layers. With DualPipe a device does half the work of its stage and half of the mirrored one.
SlowestDevice slowest_device(const StepInputs& in,
                             const SharedCosts& parts,
                             const Stage& first,
                             const Stage& last) {
  const Layout& layout = in.layout;
  const bool mirrored = weight_copies(in.shape) > 1;
  SlowestDevice slowest{first, 0};
  const auto consider = [&](const Stage& other, std::int64_t stage) {
    if (other.time.total() > slowest.work.time.total())
      slowest = {other, stage};
  };
  const auto between = [&](std::int64_t stage) {
    const Stage own = stage_time(in, parts, stage);
    if (!mirrored)
      return own;
    return Stage{}.add(own, 0.5).add(stage_time(in, parts, mirrored_stage(layout, stage)), 0.5);
  };
  if (mirrored)
    slowest.work = Stage{}.add(first, 0.5).add(last, 0.5);
  else if (layout.pp > 1)
    consider(last, layout.pp - 1);
  if (layout.pp <= 2)
    return slowest;
  const std::int64_t uniform = std::max<std::int64_t>(1, first_uniform_stage(in.model, layout));
  consider(between(uniform), uniform);
  if (layout.layer_balance == LayerBalance::Counted)
    consider(between(layout.pp - 2), layout.pp - 2);
  if (mirrored)
    consider(between(layout.pp / 2), layout.pp / 2);
  return slowest;
}

/// Fill and drain of the pipeline under a schedule.
struct PipelineFill {
  double bubble = 0;
  double alone = 0;  ///< Micro-batches of a device whose passes overlap no other pass.
};

PipelineFill fill_of(const StepInputs& in,
                     const SharedCosts& parts,
                     const Stage& slowest,
                     double all_stages) {
  const double pp = as_double(in.layout.pp);
  const double vpp = as_double(in.layout.vpp);
  const double micro_batches = as_double(in.shape.micro_batches(in.layout));
  switch (in.shape.mechanisms.schedule) {
    case PipelineSchedule::OneForwardOneBackward:
      break;
    case PipelineSchedule::AdaptivePipe: {
      const double routed =
          in.model.moe ? as_double(in.model.moe_layers() + in.model.mtp_layers) : 0;
      const double others =
          all_stages - slowest.time.total() + routed * parts.experts.hidden - slowest.hidden;
      return {others / vpp, std::min(micro_batches, ((vpp - 1) * pp + 1) / vpp)};
    }
    case PipelineSchedule::DualPipe: {
      const double beside = slowest.time.total();
      const double backward = beside + slowest.hidden - slowest.forward - slowest.hidden_forward;
      const double slot = beside + backward - 3 * slowest.weight_gradient;
      return {std::max(0.0, (pp / 2 - 1) * slot), std::min(micro_batches, pp + 1)};
    }
  }
  return {(all_stages - slowest.time.total()) / vpp, 0};
}

/// Compute that hides data parallelism: passes of one micro-batch of a stage.
struct OverlapWindow {
  double forward = 0;
  double backward = 0;
  double layers = 1;  ///< Layers of the stage; one layer's share is always exposed.
};

/// Parameters of one device, unsharded, that its replicas exchange.
struct Exchanged {
  double reduced = 0;   ///< With gradients.
  double gathered = 0;  ///< As weights, with ZeRO.
};

/// Reduces the gradients and gathers the weights among the replicas. Compute hides all of it except
/// the excess and the last layer's share.
double exposed_sync(const StepInputs& in,
                    Group group,
                    const Exchanged& parameters,
                    const OverlapWindow& beside) {
  if (group.ranks <= 1)
    return 0;
  const double ranks = as_double(group.ranks);
  const double gradients = parameters.reduced * in.shape.states.gradient;
  const double weights = parameters.gathered * in.shape.states.weight;
  const auto shows = [&](double communication, double compute) {
    return std::max(communication - compute, communication / beside.layers);
  };
  if (in.layout.zero == Zero::None)
    return shows(all_reduce_seconds(in.fabric, group, gradients), beside.backward);
  return shows(reduce_scatter_seconds(in.fabric, group, gradients / ranks), beside.backward) +
         shows(all_gather_seconds(in.fabric, group, weights / ranks), beside.forward);
}

/// Sums the gradients of what the devices that split a layer all hold, once per step.
double replicated_seconds(const StepInputs& in, std::int64_t stage) {
  const Layout& layout = in.layout;
  const StageParameters whole = replicated_parameters(in.model, layout, in.shape, stage);
  const double bytes = in.shape.states.gradient;
  double sum = 0;
  if (whole.dense() > 0)
    sum += all_reduce_seconds(in.fabric, {layout.tp, 1}, whole.dense() * bytes);
  if (whole.experts > 0)
    sum += all_reduce_seconds(in.fabric, {layout.expert_tp, 1}, whole.experts * bytes);
  return sum;
}

double data_parallel_seconds(const StepInputs& in, const Stage& stage, std::int64_t where) {
  const Layout& layout = in.layout;
  const StageParameters trained = trained_parameters(in.model, layout, in.shape, where);
  const StageParameters gathered = gathered_parameters(in.model, layout, in.shape, where);
  const OverlapWindow beside{stage.forward,
                             stage.time.total() - stage.forward,
                             std::max(1.0, as_double(stage_layers(in.model, layout, 0)))};
  const std::int64_t copies = weight_copies(in.shape);
  const Group dense{copies * layout.dp * layout.cp, layout.tp};
  const Group experts{copies * layout.expert_dp(), layout.ep * layout.expert_tp};
  const double times = layout.zero >= Zero::Weights
                           ? as_double(in.shape.micro_batches(layout))
                           : 1;  // Sharded weights are gathered for every micro-batch.
  double sum = times * exposed_sync(in, dense, {trained.dense(), gathered.dense()}, beside);
  if (gathered.experts > 0)
    sum += times * exposed_sync(in, experts, {trained.experts, gathered.experts}, beside);
  return sum + replicated_seconds(in, where);
}

/// Passes over the gradients: norm (read), clipping (read, write), update (read), zeroing (write),
/// and with FP16 unscaling (read, write). Master weights and moments are read and written. Weights
/// are copied from the master, or read and written if there is none.
double optimizer_seconds(const StepInputs& in, std::int64_t stage) {
  const StageParameters trained = trained_parameters(in.model, in.layout, in.shape, stage);
  const StateBytes& s = in.shape.states;
  const double passes = in.shape.format == NumberFormat::Fp16 ? 7 : 5;
  const double per_parameter =
      passes * s.gradient + 2 * s.optimizer() + (s.master > 0 ? s.master + s.weight : 2 * s.weight);
  double parameters = trained.total();
  if (in.layout.zero >= Zero::Optimizer) {
    const double copies = as_double(weight_copies(in.shape));
    parameters = trained.dense() / (copies * as_double(in.layout.dp * in.layout.cp)) +
                 trained.experts / (copies * as_double(in.layout.expert_dp()));
  }
  return in.device.k.optimizer_latency + parameters * per_parameter / in.device.bandwidth;
}

}  // namespace

std::array<std::pair<std::string_view, double>, TrainTime::kStageEntries + 3> TrainTime::entries()
    const {
  return {{{"matrix products", stage.matmul},
           {"attention", stage.attention},
           {"experts", stage.experts},
           {"elementwise", stage.elementwise},
           {"gradient accumulation", stage.accumulation},
           {"embedding and head", stage.head},
           {"recompute", stage.recompute},
           {"tensor-parallel communication", stage.tensor_parallel},
           {"expert-parallel communication", stage.expert_parallel},
           {"context-parallel communication", stage.context_parallel},
           {"pipeline transfers", stage.pipeline_transfer},
           {"wait for long sequences", stage.data_wait},
           {"activation swap", stage.swap},
           {"host dispatch", stage.host},
           {"pipeline bubble", bubble},
           {"data-parallel communication", data_parallel},
           {"optimizer", optimizer}}};
}

TrainTime train_iteration_time(const ModelSpec& model,
                               const Device& device,
                               const Fabric& fabric,
                               const Layout& layout,
                               const TrainShape& shape) {
  std::optional<Device> plain;
  if (shape.mechanisms.operators == OperatorKernels::Plain)
    plain = plain_kernels(device);
  const StepInputs in{model, plain ? *plain : device, fabric, layout, shape};
  const SharedCosts parts = make_parts(in);
  const Stage first = stage_time(in, parts, 0);
  const Stage last = layout.pp == 1 ? first : stage_time(in, parts, layout.pp - 1);
  const SlowestDevice slowest = slowest_device(in, parts, first, last);
  const double micro_batches = as_double(shape.micro_batches(layout));
  TrainTime time;
  time.all_stages = sum_of_stages(in, parts, first, last);
  const PipelineFill fill = fill_of(in, parts, slowest.work, time.all_stages);
  time.bubble = fill.bubble;
  time.stage.add(slowest.work.time, micro_batches);
  time.stage.expert_parallel += fill.alone * slowest.work.hidden;
  time.hidden = (micro_batches - fill.alone) * slowest.work.hidden;
  time.data_parallel = data_parallel_seconds(in, slowest.work, slowest.where);
  time.optimizer = optimizer_seconds(in, slowest.where);
  return time;
}

double model_flops(const ModelSpec& model, const TrainShape& shape) {
  const ModelFlops flops(model, shape.adapter);
  return as_double(shape.global_batch) * flops.training(whole_sequence(as_double(shape.seq)));
}

}  // namespace temper::sim_hw
