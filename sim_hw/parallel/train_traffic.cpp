#include "sim_hw/parallel/train_traffic.hpp"

#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/numbers.hpp"

namespace temper::sim_hw {
namespace {

struct PassBytes {
  LevelBytes forward;
  LevelBytes backward;
};

PassBytes tensor_bytes(const StepInputs& in, LayerKind kind) {
  const TensorExchange e = tensor_exchange(in, tensor_regions(in.model, kind));
  PassBytes out;
  if (in.layout.sequence_parallel == SequenceParallel::Off) {
    out.forward.add(all_reduce_traffic(in.fabric, e.group, e.bytes), e.regions);
    out.backward = out.forward;
    return out;
  }
  const LevelBytes gather = all_gather_traffic(in.fabric, e.group, e.bytes);
  const LevelBytes scatter = reduce_scatter_traffic(in.fabric, e.group, e.bytes);
  out.forward.add(gather, e.regions).add(scatter, e.regions);
  out.backward.add(gather, 2 * e.regions).add(scatter, e.regions);
  return out;
}

PassBytes expert_bytes(const StepInputs& in) {
  const ExpertExchange e = expert_exchange(in);
  LevelBytes once;
  once.add(moe_traffic(in.fabric, e.group, e.traffic, e.how), 2)
      .add(all_gather_traffic(in.fabric, e.tensor, e.tensor_bytes))
      .add(reduce_scatter_traffic(in.fabric, e.tensor, e.tensor_bytes));
  return {once, once};
}

PassBytes context_bytes(const StepInputs& in) {
  PassBytes out;
  if (in.layout.cp == 1)
    return out;
  const LevelBytes block = p2p_traffic(in.fabric, in.layout.tp, context_block_bytes(in));
  const double steps = as_double(in.layout.cp - 1);
  out.forward.add(block, steps);
  out.backward.add(block, 2 * steps);
  return out;
}

/// One boundary, one direction, per device.
LevelBytes boundary_bytes(const StepInputs& in) {
  const double part = in.plane_bytes() / in.tp();
  LevelBytes out = p2p_traffic(in.fabric, in.layout.stage_devices(), part);
  if (in.layout.sequence_parallel == SequenceParallel::Off)
    out.add(all_gather_traffic(in.fabric, {in.layout.tp, 1}, part));
  return out;
}

/// Must match head_time() in train_iteration.cpp.
LevelBytes head_bytes(const StepInputs& in) {
  LevelBytes out;
  if (in.model.vocabulary == 0)
    return out;
  const Group group{in.layout.tp, 1};
  return out.add(all_reduce_traffic(in.fabric, group, 4 * in.tokens()), 3)
      .add(all_reduce_traffic(in.fabric, group, in.plane_bytes()));
}

/// Per device: reduces `reduced` parameters' gradients and gathers `gathered` weights in the group.
LevelBytes sync_bytes(const StepInputs& in, Group group, double reduced, double gathered) {
  LevelBytes out;
  if (group.ranks <= 1)
    return out;
  const StateBytes& bytes = in.shape.states;
  if (in.layout.zero == Zero::None)
    return all_reduce_traffic(in.fabric, group, reduced * bytes.gradient);
  const double ranks = as_double(group.ranks);
  const double times =
      in.layout.zero >= Zero::Weights ? as_double(in.shape.micro_batches(in.layout)) : 1;
  return out.add(reduce_scatter_traffic(in.fabric, group, reduced * bytes.gradient / ranks), times)
      .add(all_gather_traffic(in.fabric, group, gathered * bytes.weight / ranks), times);
}

LevelBytes data_bytes(const StepInputs& in) {
  const Layout& layout = in.layout;
  LevelBytes out;
  const std::int64_t copies = weight_copies(in.shape);
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    const StageParameters reduced = trained_parameters(in.model, layout, in.shape, stage);
    const StageParameters gathered = gathered_parameters(in.model, layout, in.shape, stage);
    const Group dense{copies * layout.dp * layout.cp, layout.tp};
    const Group experts{copies * layout.expert_dp(), layout.ep * layout.expert_tp};
    const double devices = as_double(layout.stage_devices());
    out.add(sync_bytes(in, dense, reduced.dense(), gathered.dense()), devices);
    if (gathered.experts > 0)
      out.add(sync_bytes(in, experts, reduced.experts, gathered.experts), devices);
  }
  return out;
}

/// Gradients of adapters that the devices which split a layer all hold.
LevelBytes replicated_bytes(const StepInputs& in) {
  const Layout& layout = in.layout;
  const double bytes = in.shape.states.gradient;
  LevelBytes out;
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    const StageParameters whole = replicated_parameters(in.model, layout, in.shape, stage);
    const auto add = [&](std::int64_t ranks, double parameters) {
      if (parameters > 0) {
        out.add(all_reduce_traffic(in.fabric, {ranks, 1}, parameters * bytes),
                as_double(layout.stage_devices()));
      }
    };
    add(layout.tp, whole.dense());
    add(layout.expert_tp, whole.experts);
  }
  return out;
}

enum class Passes { Forward, Step };

StepTraffic traffic(const StepInputs& in, Passes passes) {
  const Layout& layout = in.layout;
  const bool step = passes == Passes::Step;
  const double forwards = step && in.shape.recompute == Recompute::Full ? 2 : 1;
  // Multiply by the devices of a stage and by the micro-batches.
  const double times = as_double(in.shape.micro_batches(layout) * layout.stage_devices());
  const double modules = step ? as_double(in.model.mtp_layers) : 0;
  const double routed = in.model.moe ? as_double(in.model.moe_layers()) + modules : 0;
  const double plain = as_double(in.model.layers) + modules - routed;
  StepTraffic out;
  const auto add = [&](LevelBytes& to, const PassBytes& bytes, double layers) {
    to.add(bytes.forward, forwards * layers * times);
    if (step)
      to.add(bytes.backward, layers * times);
  };
  add(out.context, context_bytes(in), plain + routed);
  if (plain > 0)
    add(out.tensor, tensor_bytes(in, LayerKind::Dense), plain);
  if (in.model.moe) {
    add(out.tensor, tensor_bytes(in, LayerKind::Experts), routed);
    add(out.expert, expert_bytes(in), routed);
    if (step) {
      const LoadSum loads = load_sum(in);
      out.expert.add(all_reduce_traffic(in.fabric, loads.group, loads.bytes), routed * times);
    }
  }
  if (layout.pp > 1) {
    const double boundaries = as_double(layout.pp * layout.vpp - 1);
    out.pipeline.add(boundary_bytes(in), (step ? 2 : 1) * boundaries * times);
  }
  if (step) {
    out.tensor.add(head_bytes(in), (1 + modules) * times).add(replicated_bytes(in));
    out.data = data_bytes(in);
  }
  return out;
}

}  // namespace

LevelBytes StepTraffic::total() const {
  LevelBytes out = tensor;
  return out.add(expert).add(context).add(pipeline).add(data);
}

StepTraffic train_traffic(const ModelSpec& model,
                          const Device& device,
                          const Fabric& fabric,
                          const Layout& layout,
                          const TrainShape& shape) {
  return traffic({model, device, fabric, layout, shape}, Passes::Step);
}

StepTraffic forward_traffic(const ModelSpec& model,
                            const Device& device,
                            const Fabric& fabric,
                            const Layout& layout,
                            const TrainShape& shape) {
  return traffic({model, device, fabric, layout, shape}, Passes::Forward);
}

}  // namespace temper::sim_hw
