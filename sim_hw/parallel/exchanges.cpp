// Exchanges between the devices of a layer (sim_hw/parallel/layer_cost.hpp).
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/layer_cost.hpp"

#include <algorithm>

namespace temper::sim_hw {
namespace {

/// The path to try first.
AllToAll way_of(ExpertPath path) {
  switch (path) {
    case ExpertPath::Hierarchical:
      return AllToAll::Hierarchical;
    case ExpertPath::Gathered:
      return AllToAll::Gathered;
    case ExpertPath::Fastest:
    case ExpertPath::Flat:
      break;
  }
  return AllToAll::Flat;
}

}  // namespace

TensorExchange tensor_exchange(const StepInputs& in, double regions) {
  const bool parts = in.layout.sequence_parallel == SequenceParallel::On;
  return {{in.layout.tp, 1}, regions, parts ? in.plane_bytes() / in.tp() : in.plane_bytes()};
}

double cut_ffn(const ModelSpec& model, LayerKind kind) {
  if (kind == LayerKind::Dense)
    return as_double(model.ffn);
  return as_double(model.moe->shared_experts * model.moe->shared_expert_ffn);
}

double tensor_regions(const ModelSpec& model, LayerKind kind) {
  return cut_ffn(model, kind) > 0 ? 2 : 1;
}

ExpertExchange expert_exchange(const StepInputs& in) {
  const Layout& layout = in.layout;
  const Mechanisms& mechanisms = in.shape.mechanisms;
  const double rows = in.tokens() / in.tp();
  const double top_k = as_double(in.model.moe->top_k);
  ExpertExchange e;
  e.group = {layout.ep, layout.expert_tp};
  e.traffic = {rows * in.shape.expert_imbalance, top_k, 2 * in.hidden()};
  if (mechanisms.token_copies == TokenCopies::PerDevice) {
    e.traffic.sent =
        distinct_devices(as_double(layout.ep), as_double(in.model.moe->experts), top_k) / top_k;
  }
  if (layout.ep > 1) {
    const auto both = [&](AllToAll how) {
      return moe_dispatch_seconds(in.fabric, e.group, e.traffic, how) +
             moe_combine_seconds(in.fabric, e.group, e.traffic, how);
    };
    e.how = way_of(mechanisms.expert_path);
    e.seconds = both(e.how);
    if (mechanisms.expert_path == ExpertPath::Fastest) {
      const double by_node = both(AllToAll::Hierarchical);
      if (by_node < e.seconds) {
        e.how = AllToAll::Hierarchical;
        e.seconds = by_node;
      }
    }
  }
  e.tensor = {layout.expert_tp, 1};
  e.tensor_bytes = 2 * rows * top_k * in.hidden();
  return e;
}

LoadSum load_sum(const StepInputs& in) {
  const Layout& layout = in.layout;
  const double bytes = 4 * as_double(in.model.moe->experts);
  switch (in.shape.mechanisms.balance_loss) {
    case BalanceLoss::ExpertGroup:
      return {{layout.ep, layout.expert_tp}, bytes};
    case BalanceLoss::Everywhere:
      return {{layout.stage_devices(), 1}, bytes};
    case BalanceLoss::MicroBatch:
      break;
  }
  return {{1, 1}, 0};
}

double context_block_bytes(const StepInputs& in) {
  const double heads = in.model.latent ? as_double(in.model.heads) / in.tp()
                                       : std::max(1.0, as_double(in.model.kv_heads) / in.tp());
  return 2 * in.tokens() * heads * as_double(in.model.head_dim + in.model.value_dim());
}

}  // namespace temper::sim_hw
