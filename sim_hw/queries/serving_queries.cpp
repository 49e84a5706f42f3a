// Request kind of an inference engine that serves requests.
#include "sim_hw/iteration/serving.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"
#include "sim_hw/steps/rollout_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace temper::sim_hw {
namespace {

/// Sequences that engines run at once by default, at most.
constexpr double kMostSequences = 2048;
/// Most drafted tokens per step.
constexpr double kDeepest = 64;

struct ServingSubject {
  const HardwareSpec* hardware = nullptr;
  const ModelSpec* model = nullptr;
  double devices = 1;
  ServingPlan plan;
  ServingWork work;
  bool decode_only = false;
};

Status read_layout(const Request& r, ServingSubject& s) {
  const Params& p = r.params;
  TEMPER_TRY(const std::int64_t tp, p.integer("tp", 1));
  TEMPER_TRY(const std::int64_t dp, p.integer("dp", 1));
  if (tp < 1 || dp < 1)
    return invalid_input(fmt::format("tp={}, dp={}: must be 1 or more", tp, dp));
  // Without expert parallelism the devices of a replica share each expert, which costs each of them
  // the same bytes and products as a share of the experts.
  const std::int64_t shared = s.model->moe && s.model->moe->experts % tp == 0 ? tp : 1;
  TEMPER_TRY(const std::int64_t ep, p.integer("ep", shared));
  s.devices = static_cast<double>(tp) * static_cast<double>(dp);
  if (p.has("devices")) {
    TEMPER_TRY(s.devices, positive(p, "devices"));
  }
  if (ep < 1)
    return invalid_input(fmt::format("ep={}: must be 1 or more", ep));
  const bool fits = s.model->heads % tp == 0 && (!s.model->moe || s.model->moe->experts % ep == 0 ||
                                                 s.model->moe->experts < ep);
  if (!fits) {
    return invalid_input(
        fmt::format("tp={}, ep={}: expected divisors of the {} heads and of the experts",
                    tp,
                    ep,
                    s.model->heads));
  }
  s.plan.layout = {static_cast<double>(tp), static_cast<double>(dp), static_cast<double>(ep)};
  return {};
}

Status read_speculation(const Params& p, ServingPlan& plan) {
  TEMPER_TRY(plan.drafts.by, choice(p, "draft", Draft::None));
  TEMPER_TRY(plan.drafts.depth, p.number("depth", 0));
  TEMPER_TRY(const double acceptance, p.number("acceptance", 0));
  // Written so that NaN is out of range, too.
  const double depth = plan.drafts.depth;
  if (!(depth >= 0 && depth <= kDeepest && acceptance >= 0 && acceptance <= 1)) {
    return invalid_input(fmt::format(
        "depth={}, acceptance={}: expected 0 to {} and 0 to 1", depth, acceptance, kDeepest));
  }
  TEMPER_TRY(plan.tokens_per_step,
             p.number("tokens_per_step", accepted_tokens(acceptance, plan.drafts.depth)));
  if (!(plan.tokens_per_step >= 1 && plan.tokens_per_step <= plan.drafts.depth + 1)) {
    return invalid_input(fmt::format("tokens_per_step={}: expected 1 to depth + 1, which is {}",
                                     plan.tokens_per_step,
                                     plan.drafts.depth + 1));
  }
  return {};
}

/// `batch` counts the sequences of all replicas; `batch=fit` is as many as fit.
Status read_work(const Params& p, ServingSubject& s) {
  s.decode_only = p.has("context");
  if (s.decode_only) {
    TEMPER_TRY(s.work.context, at_least_one(p, "context"));
  } else {
    TEMPER_TRY(const double input, at_least_one(p, "input"));
    TEMPER_TRY(s.work.output, at_least_one(p, "output"));
    TEMPER_TRY(const double hit, p.number("cached", 0));
    if (hit < 0 || hit >= 1)
      return invalid_input(fmt::format("cached={}: expected 0 to less than 1", hit));
    s.work.input = input * (1 - hit);
    s.work.context = input + s.work.output / 2;
  }
  if (p.text("batch", "") == "fit") {
    TEMPER_TRY(const double share, p.number("cache_share", 1));
    const double tokens = s.decode_only ? s.work.context : s.work.context + s.work.output / 2;
    s.work.batch = std::floor(
        share * fitting_sequences(*s.model, *s.hardware, s.plan, tokens, kMostSequences));
    if (s.work.batch < 1) {
      return Error{
          ErrorCode::OutOfMemory,
          fmt::format("no sequence of {} tokens fits the device memory beside the weights; "
                      "nearest: more tp or ep",
                      tokens)};
    }
    return {};
  }
  TEMPER_TRY(const double batch, positive(p, "batch"));
  s.work.batch = std::max(1.0, batch / s.plan.layout.dp);
  return {};
}

void add_rates(Cost& out, const ServingSubject& s, const std::string& name, double rate) {
  const auto dies = static_cast<double>(s.hardware->dies_per_card);
  out.metrics.push_back({name, "count", rate, {}});
  out.metrics.push_back({name + "_per_device", "count", rate / s.devices, {}});
  out.metrics.push_back({name + "_per_card", "count", rate / s.devices * dies, {}});
}

Result<Cost> cost_of_serving(const CostContext& context, const Request& r) {
  ServingSubject s;
  TEMPER_TRY(s.hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(s.model, model_of(context, r.params));
  TEMPER_TRY_STATUS(read_layout(r, s));
  TEMPER_TRY(s.plan.formats.weights, choice(r.params, "weights", WeightFormat::Bf16));
  TEMPER_TRY(s.plan.formats.cache, choice(r.params, "cache", CacheFormat::Bf16));
  s.plan.formats.experts_only = r.params.text("format_of", "all") == "experts";
  s.plan.prefill_beside = r.params.text("prefill", "shared") == "separate";
  TEMPER_TRY_STATUS(read_speculation(r.params, s.plan));
  TEMPER_TRY_STATUS(read_work(r.params, s));
  const ServingCost cost = serving_cost(*s.model, *s.hardware, s.plan, s.work);
  const double n = s.work.batch * s.plan.layout.dp;
  const double decode = cost.step / s.plan.tokens_per_step;
  const double others = s.decode_only || s.plan.prefill_beside
                            ? 0
                            : (s.work.batch - 1) * cost.prefill / s.work.output;
  Cost out;
  out.metrics.push_back(
      {"step_time",
       "s",
       cost.step,
       {{"model", 1, cost.step - cost.draft, ""}, {"drafts", 1, cost.draft, ""}}});
  out.metrics.push_back({"tpot", "s", decode + others, {}});
  out.metrics.push_back({"tpot_upper_bound", "s", decode + others, {}});
  out.metrics.push_back({"running", "count", n, {}});
  if (s.decode_only) {
    add_rates(out, s, "output_throughput", n / decode);
    return out;
  }
  add_rates(out, s, "output_throughput", n * s.work.output / cost.cycle);
  const double prefills = s.work.batch * cost.prefill;
  out.metrics.push_back({"ttft", "s", cost.prefill, {}});
  out.metrics.push_back({"prefill_latency", "s", prefills, {}});
  add_rates(out, s, "prefill_throughput", n * s.work.input / prefills);
  out.metrics.push_back({"request_throughput", "count", n / cost.cycle, {}});
  return out;
}

constexpr std::array kServingKinds{
    Kind{"serving",
         "An inference engine: decode steps with or without drafts, and prefills beside them.",
         "model; tp; dp; ep (default: tp); batch (of all replicas)|fit; input; output | context; "
         "weights=bf16|fp16|fp8|fp8_block|mxfp8|int8|w4a16|w4a8; format_of=all|experts; "
         "cache=bf16|fp8|int8; draft=none|mtp|eagle|ngram; depth; acceptance | tokens_per_step; "
         "cached=0; cache_share=1; prefill=shared|separate; devices",
         cost_of_serving},
};

}  // namespace

std::span<const Kind> serving_kinds() {
  return kServingKinds;
}

}  // namespace temper::sim_hw
