#include "sim_hw/iteration/serving.hpp"

#include "sim_hw/memory/ledger.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {
namespace {

double prefill_seconds_of(const Device& d,
                          const Fabric& fabric,
                          const StepModel& m,
                          const RolloutLayout& layout,
                          double tokens) {
  SumSink sum;
  visit_layers(d, m, {tokens, tokens * layout.dp, m.experts, false}, Pass::Forward, sum);
  visit_attention(d, m, 1, tokens, Pass::Forward, sum);
  visit_rollout_exchanges(fabric, m, layout, tokens, sum);
  detail::visit_gemm(d, Op::Head, Pass::Forward, 1, {1, m.vocabulary, m.hidden}, sum);
  return sum.seconds;
}

}  // namespace

ServingCost serving_cost(const ModelSpec& model,
                         const HardwareSpec& hardware,
                         const ServingPlan& plan,
                         const ServingWork& work) {
  const Device d = make_device(hardware, plan.formats);
  const Fabric fabric = make_fabric(hardware);
  const StepModel m =
      make_step_model(model, plan.layout.tp, plan.layout.ep, {}, plan.layout.redundant_experts);
  const ReplicaShape shape{work.batch, work.batch, work.context, plan.drafts.queries()};
  ServingCost out;
  out.draft = draft_seconds(d, fabric, m, plan.layout, plan.drafts, shape);
  out.step = parallel_decode_seconds(d, fabric, m, plan.layout, shape) + out.draft;
  out.prefill = prefill_seconds_of(d, fabric, m, plan.layout, work.input);
  const double decode = work.output / plan.tokens_per_step * out.step;
  out.cycle = (plan.prefill_beside ? 0 : work.batch * out.prefill) + decode;
  return out;
}

double fitting_sequences(const ModelSpec& model,
                         const HardwareSpec& hardware,
                         const ServingPlan& plan,
                         double tokens,
                         double limit) {
  constexpr double kCacheShare = 0.9;
  Layout layout;
  layout.tp = static_cast<std::int64_t>(plan.layout.tp);
  layout.dp = static_cast<std::int64_t>(plan.layout.dp);
  layout.ep = static_cast<std::int64_t>(plan.layout.ep);
  layout.redundant_experts = plan.layout.redundant_experts;
  InferenceShape shape;
  const MatrixFormat format = matrix_format(plan.formats.weights, hardware.die);
  shape.weight_bytes = format.weight_bytes;
  shape.kv_bytes = cache_bytes(plan.formats.cache);
  shape.cached_tokens = tokens;
  const double capacity = kCacheShare * static_cast<double>(hardware.die.memory.count());
  const Ledger one = inference_ledger(model, layout, shape);
  const double free = capacity - (one.total() - one.kv_cache);
  return std::clamp(std::floor(free / one.kv_cache), 0.0, limit);
}

}  // namespace temper::sim_hw
