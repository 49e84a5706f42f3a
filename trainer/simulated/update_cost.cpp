#include "trainer/simulated/update_cost.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/iteration/cluster.hpp"
#include "sim_hw/layout/stages.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/train_traffic.hpp"

#include <algorithm>

namespace temper::trainer {
namespace {

/// Forward passes of a layer over its attention, and its backward pass in units of one.
struct AttentionPasses {
  double forward = 0, backward = 0;
};

double attention_correction(const sim_hw::TrainTime& time,
                            const actors::LayerAttention& attention,
                            const sim_hw::ModelSpec& model,
                            const sim_hw::Layout& layout,
                            double micro_batches,
                            AttentionPasses passes) {
  // The attention of the slowest stage is that of its layers, forward and backward.
  const double all = time.stage.attention / (attention.packed * (1 + passes.backward));
  const double slowest = all / micro_batches;
  const double others = static_cast<double>(model.layers + model.mtp_layers) - slowest;
  return (passes.forward + passes.backward) * (attention.real - attention.packed) *
         (all + others / static_cast<double>(layout.vpp));
}

/// As a token meets it whose copies are all dropped.
sim_hw::ModelSpec without_routed_experts(sim_hw::ModelSpec model) {
  if (model.moe)
    model.moe->top_k = 0;
  return model;
}

}  // namespace

UpdateModel::UpdateModel(const actors::SimulatedRun& run)
    : run_(run),
      model_(actors::trained_model(run)),
      device_(sim_hw::make_device(run.cluster)),
      fabric_(sim_hw::make_fabric(run.cluster)),
      layout_(actors::trainer_layout(run)),
      flops_(model_, run.adapter),
      flops_without_experts_(without_routed_experts(model_), run.adapter),
      experts_(actors::trainer_experts(run, layout_)),
      parked_(actors::trainer_memory(run).host.optimizer) {
  if (run.config.trainer.data_balance != actors::DataBalance::Step)
    per_square_ = cost_per_square();
  if (parked_ > 0) {
    optimizer_transfer_ =
        sim_hw::to_device_seconds(fabric_, parked_) + sim_hw::from_device_seconds(fabric_, parked_);
  }
}

std::int64_t UpdateModel::multiple_of_micro_batches() const {
  if (run_.config.trainer.mechanisms.schedule == sim_hw::PipelineSchedule::DualPipe)
    return 2;
  return layout_.vpp > 1 ? layout_.pp : 1;
}

actors::PackingLimits UpdateModel::limits() const {
  std::int64_t coupled =
      std::clamp<std::int64_t>(layout_.ep / (layout_.tp * layout_.cp), 1, layout_.dp);
  while (layout_.dp % coupled != 0)
    --coupled;
  return {.tokens = run_.config.trainer.micro_batch_tokens,
          .replicas = layout_.dp,
          .multiple = multiple_of_micro_batches(),
          .balance = run_.config.trainer.data_balance,
          .coupled = coupled,
          .per_square = per_square_};
}

double UpdateModel::cost_per_square() const {
  const Tokens full(run_.config.trainer.micro_batch_tokens);
  const sim_hw::TrainShape shape = actors::training_shape(run_, layout_, 1, full);
  const sim_hw::Device used = sim_hw::device_under(shape.mechanisms, device_);
  const sim_hw::StepInputs in{model_, used, fabric_, layout_, shape};
  const sim_hw::StageTime layer =
      sim_hw::layer_cost(in, model_.moe ? sim_hw::LayerKind::Experts : sim_hw::LayerKind::Dense)
          .time;
  const double once = layer.attention / (1 + used.k.attention_backward);
  const double attention = once * (sim_hw::attention_passes(in) + used.k.attention_backward);
  return attention / (layer.total() - attention) / static_cast<double>(shape.seq);
}

double UpdateModel::balanced_seconds(const actors::Packing& packing,
                                     const sim_hw::TrainShape& shape) const {
  if (!experts_.any())
    return 0;
  const sim_hw::Device used = sim_hw::device_under(shape.mechanisms, device_);
  const sim_hw::StageTime layer =
      sim_hw::layer_cost({model_, used, fabric_, layout_, shape}, sim_hw::LayerKind::Experts).time;
  return static_cast<double>(packing.micro_batches) * (layer.experts + layer.expert_parallel);
}

sim_hw::TrainShape UpdateModel::shape(const actors::Packing& packing) const {
  return actors::training_shape(run_, layout_, packing.micro_batches, packing.mean_tokens());
}

UpdateCost UpdateModel::times(const actors::Packing& packing,
                              sim_hw::TrainShape shape,
                              const sim_hw::MigrationOutcome& experts) const {
  UpdateCost cost;
  cost.experts = experts;
  shape.expert_imbalance = experts.imbalance;
  cost.expert_migration =
      experts.seconds * static_cast<double>(sim_hw::stage_layers(model_, layout_, 0));
  const sim_hw::TrainTime time =
      sim_hw::train_iteration_time(model_, device_, fabric_, layout_, shape);
  cost.time = time;
  cost.pipeline = time.stage.total() + time.bubble;
  cost.data_parallel = time.data_parallel;
  cost.optimizer = time.optimizer;
  cost.host_transfer = optimizer_transfer_;
  if (shape.attention == sim_hw::AttentionKernel::Fused) {
    const sim_hw::Device used = sim_hw::device_under(shape.mechanisms, device_);
    cost.attention_correction = attention_correction(
        time,
        actors::layer_attention(model_, used, layout_, shape, packing.mean_squares()),
        model_,
        layout_,
        static_cast<double>(packing.micro_batches),
        {sim_hw::attention_passes({model_, used, fabric_, layout_, shape}),
         used.k.attention_backward});
  }
  if (run_.critic) {
    cost.critic = sim_hw::forward_iteration_seconds(model_, device_, fabric_, layout_, shape) +
                  cost.pipeline + cost.attention_correction + cost.data_parallel + cost.optimizer;
  }
  return cost;
}

double UpdateModel::seconds(const actors::Packing& packing) const {
  const sim_hw::TrainShape shape = this->shape(packing);
  const sim_hw::MigrationOutcome typical =
      actors::typical(experts_, balanced_seconds(packing, shape));
  return times(packing, shape, typical).total();
}

UpdateCost UpdateModel::operator()(std::vector<Tokens> lengths, PolicyVersion version) {
  lengths = actors::repeated(std::move(lengths), run_.response_weight);
  double flops = 0, without_experts = 0;
  for (const Tokens length : lengths) {
    const auto sequence = sim_hw::whole_sequence(static_cast<double>(length.count()));
    const auto add = [&](const sim_hw::ModelFlops& model, double& sum) {
      sum += model.training(sequence);
      if (run_.critic)
        sum += model.training(sequence) + model.forward(sequence);
    };
    add(flops_, flops);
    add(flops_without_experts_, without_experts);
  }
  const actors::Packing packing = actors::pack(std::move(lengths), limits());
  sim_hw::TrainShape shape = this->shape(packing);
  UpdateCost cost = times(packing, shape, experts_.at(version, balanced_seconds(packing, shape)));
  cost.flops = flops - cost.experts.dropped * (flops - without_experts);
  shape.expert_imbalance = 1 - cost.experts.dropped;  // What all devices send together.
  cost.sent = sim_hw::train_traffic(model_, device_, fabric_, layout_, shape).total();
  if (run_.critic) {
    const sim_hw::LevelBytes policy = cost.sent;
    cost.sent.add(policy).add(
        sim_hw::forward_traffic(model_, device_, fabric_, layout_, shape).total());
  }
  cost.swapped_optimizer = parked_;
  cost.swapped_activations = static_cast<double>(packing.micro_batches) *
                             sim_hw::swap_traffic({model_, device_, fabric_, layout_, shape}) *
                             (run_.critic ? 2 : 1);
  cost.memory = actors::trainer_memory(run_, packing.micro_batches, Tokens(packing.largest_tokens));
  cost.micro_batches = packing.micro_batches * layout_.dp;
  return cost;
}

}  // namespace temper::trainer
