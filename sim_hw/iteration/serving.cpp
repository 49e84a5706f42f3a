#include "sim_hw/iteration/serving.hpp"

#include "sim_hw/memory/ledger.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {
namespace {

/// The layers that draft one token: one of the model's last kind, or a dense one.
StepModel draft_model(StepModel m, Draft draft) {
  const bool experts = draft == Draft::Mtp && m.moe_layers > 0;
  m.layers = 1;
  m.moe_layers = experts ? 1 : 0;
  m.dense_layers = experts ? 0 : 1;
  return m;
}

double draft_seconds(const Device& d,
                     const Fabric& fabric,
                     const StepModel& m,
                     const ServingPlan& plan,
                     ReplicaShape shape) {
  if (plan.draft == Draft::None || plan.draft == Draft::Ngram)
    return 0;
  shape.queries = 1;
  return plan.depth *
         parallel_decode_seconds(d, fabric, draft_model(m, plan.draft), plan.layout, shape);
}

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

double accepted_tokens(double acceptance, double depth) {
  double sum = 0;
  for (double i = 0; i <= depth; ++i)
    sum += std::pow(acceptance, i);
  return sum;
}

Device serving_device(const HardwareSpec& hardware, const EngineFormats& formats) {
  Device d = make_device(hardware);
  d.experts = matrix_format(formats.weights, hardware.die);
  if (!formats.experts_only)
    d.linear = d.experts;
  d.kv_bytes = cache_bytes(formats.cache);
  return d;
}

ServingCost serving_cost(const ModelSpec& model,
                         const HardwareSpec& hardware,
                         const ServingPlan& plan,
                         const ServingWork& work) {
  const Device d = serving_device(hardware, plan.formats);
  const Fabric fabric = make_fabric(hardware);
  const StepModel m = make_step_model(model, plan.layout.tp, plan.layout.ep);
  const double queries = plan.draft == Draft::None ? 1 : 1 + plan.depth;
  const ReplicaShape shape{work.batch, work.batch, work.context, queries};
  ServingCost out;
  out.draft = draft_seconds(d, fabric, m, plan, shape);
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
