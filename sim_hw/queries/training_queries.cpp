// Request kinds of training as frameworks report it: a training run, and an RL step whose responses
// have a spread of lengths.
#include "sim_hw/iteration/cluster.hpp"
#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/iteration/serving.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/parallel/layout_request.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace temper::sim_hw {
namespace {

Result<Cost> cost_of_training_run(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const ModelSpec* model, model_of(context, r.params));
  TEMPER_TRY(TrainRequest q, train_request(r.params, *model, *hardware, r.cards));
  TEMPER_TRY(const WeightFormat precision, choice(r.params, "precision", WeightFormat::Bf16));
  TEMPER_TRY(const std::int64_t rank, r.params.integer("lora", 0));
  TEMPER_TRY(const bool chunked,
             one_of<bool>(r.params, "head", {{"whole", false}, {"chunked", true}}));
  if (rank != 0) {
    TEMPER_TRY(q.shape.adapter, adapter_of_every_layer(*model, rank));
  }
  TEMPER_TRY(const bool refuses,
             one_of<bool>(r.params, "memory", {{"report", false}, {"refuse", true}}));
  if (refuses)
    TEMPER_TRY_STATUS(check(*model, *hardware, r.cards, q.layout, q.shape));
  Device device = make_device(*hardware);
  device.linear = matrix_format(precision, hardware->die);
  device.experts = device.linear;
  const TrainTime time =
      train_iteration_time(*model, device, make_fabric(*hardware), q.layout, q.shape);
  const double tokens = as_double(q.shape.global_batch * q.shape.seq);
  const double devices = as_double(q.layout.devices());
  const double rate = tokens / time.total();
  const double flops = model_flops(*model, q.shape) / time.total() / devices;
  Cost out;
  Metric total{"time", "s", time.total(), {}};
  for (const auto& [entry, seconds] : time.entries()) {
    if (seconds > 0)
      total.terms.push_back({std::string(entry), 1, seconds, ""});
  }
  out.metrics.push_back(std::move(total));
  out.metrics.push_back({"throughput", "count", rate, {}});
  out.metrics.push_back({"throughput_per_device", "count", rate / devices, {}});
  out.metrics.push_back({"model_flops_per_device", "FLOP/s", flops, {}});
  out.metrics.push_back({"mfu", "count", flops / device.matrix_peak, {}});
  // A chunked loss holds the logits of a small part of the tokens.
  const Ledger ledger = worst_train_ledger(*model, q.layout, q.shape);
  const double logits = chunked ? ledger.head : 0;
  out.metrics.push_back({"peak_memory", "B", ledger.total() - logits, {}});
  return out;
}

struct RlSubject {
  const HardwareSpec* hardware = nullptr;
  const ModelSpec* model = nullptr;
  ClusterWork work;
  ClusterPlan plan;
  ServingPlan engine;
  double mean = 0;     ///< Tokens of a response.
  double longest = 0;  ///< Limit of a response.
  double spread = 1;   ///< 99th percentile of the lengths over their median.
  double passes = 1;   ///< Forward passes for log-probs.
  std::int64_t devices = 1;
};

Status read_rl_work(const Params& p, RlSubject& s) {
  TEMPER_TRY(s.work.prompts, at_least_one(p, "prompts"));
  TEMPER_TRY(s.work.group, at_least_one(p, "group"));
  TEMPER_TRY(s.work.prompt, at_least_one(p, "prompt_len"));
  TEMPER_TRY(s.mean, positive(p, "mean_out"));
  TEMPER_TRY(s.longest, p.number("max_out", s.mean));
  TEMPER_TRY(s.spread, p.number("p99_over_median", 1));
  TEMPER_TRY(s.passes, p.number("logprob_passes", 1));
  if (s.longest < s.mean || s.spread < 1 || s.work.sequences() > 1e7) {
    return invalid_input(
        fmt::format("max_out={}, p99_over_median={}: expected at least the mean of {}, and 1",
                    s.longest,
                    s.spread,
                    s.mean));
  }
  return {};
}

Status read_rl_layout(const Request& r, RlSubject& s) {
  const Params& p = r.params;
  const std::int64_t dies = s.hardware->dies_per_card;
  s.devices = r.cards * dies;
  TEMPER_TRY(const std::int64_t rollout, p.integer("rollout_devices", s.devices));
  s.plan.cards = rollout < s.devices ? Cards::Separate : Cards::Shared;
  TEMPER_TRY(const std::int64_t tp, p.integer("rollout_tp", 1));
  TEMPER_TRY(const std::int64_t ep, p.integer("rollout_ep", s.model->moe ? tp : 1));
  Layout& t = s.plan.training;
  TEMPER_TRY(t.tp, p.integer("train_tp", 1));
  TEMPER_TRY(t.pp, p.integer("train_pp", 1));
  TEMPER_TRY(t.cp, p.integer("train_cp", 1));
  TEMPER_TRY(t.ep, p.integer("train_ep", 1));
  const std::int64_t trainers = s.plan.cards == Cards::Shared ? s.devices : s.devices - rollout;
  const std::int64_t cut = t.tp * t.pp * t.cp;
  if (tp < 1 || rollout < tp || cut < 1 || trainers < cut || trainers % cut != 0) {
    return invalid_input(fmt::format(
        "rollout_tp={}, train_tp x train_pp x train_cp = {}: expected divisors of the devices",
        tp,
        cut));
  }
  t.dp = trainers / cut;
  TEMPER_TRY(const std::int64_t zero, p.integer("zero", 1));
  t.zero = zero >= 3 ? Zero::Weights : Zero::Optimizer;
  t.sequence_parallel = t.tp > 1 ? SequenceParallel::On : SequenceParallel::Off;
  s.plan.rollout = {static_cast<double>(tp), as_double(rollout / tp), static_cast<double>(ep)};
  s.engine.layout = s.plan.rollout;
  TEMPER_TRY(s.engine.formats.weights, choice(p, "weights", WeightFormat::Bf16));
  TEMPER_TRY(s.engine.drafts.by, choice(p, "draft", Draft::None));
  TEMPER_TRY(s.engine.drafts.depth, p.number("depth", 0));
  TEMPER_TRY(s.engine.tokens_per_step, p.number("tokens_per_step", 1));
  s.plan.tuning = p.text("host", "tuned") == "tuned" ? HostTuning::Tuned : HostTuning::None;
  return {};
}

/// Whole sequences for the training layout: rounded up to what its parallelism divides.
ClusterWork packed_work(const RlSubject& s) {
  ClusterWork work = s.work;
  const double part = 2 * as_double(s.plan.training.tp * s.plan.training.cp);
  const double replicas = as_double(s.plan.training.dp);
  work.response = std::ceil((s.work.prompt + s.mean) / part) * part - s.work.prompt;
  work.prompts = std::ceil(s.work.sequences() / replicas) * replicas;
  work.group = 1;
  return work;
}

struct RlRollout {
  double prefill = 0;
  double decode = 0;
};

/// Responses of a replica start together and leave as they end: the batch of a step is the share of
/// them that is longer. More sequences than fit the memory run one wave after the other.
Result<RlRollout> rollout_of(const RlSubject& s) {
  constexpr std::size_t kQuantiles = 64;
  constexpr double kMostRunning = 2048;
  TEMPER_TRY(const std::vector<double> lengths,
             lognormal_lengths(kQuantiles, s.mean, s.longest, s.spread));
  const double all = s.work.sequences() / s.plan.rollout.dp;
  const double most =
      fitting_sequences(*s.model, *s.hardware, s.engine, s.work.prompt + s.mean, kMostRunning);
  if (most < 1)
    return Error{ErrorCode::OutOfMemory, "the weights of a replica do not fit its devices"};
  const double batch = std::min(all, most);
  const double waves = std::max(1.0, all / most);
  const double host =
      s.plan.tuning == HostTuning::None ? s.hardware->constants.operators.host_untuned_step : 0;
  RlRollout out;
  double before = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double live = std::max(1.0,
                                 batch * as_double(static_cast<std::int64_t>(kQuantiles - i)) /
                                     static_cast<double>(kQuantiles));
    const ServingWork work{live, s.work.prompt, 1, s.work.prompt + (before + lengths[i]) / 2};
    const ServingCost cost = serving_cost(*s.model, *s.hardware, s.engine, work);
    out.decode += waves * (lengths[i] - before) / s.engine.tokens_per_step * (cost.step + host);
    before = lengths[i];
    if (i == 0)
      out.prefill = std::max(1.0, all / s.work.group) * cost.prefill;
  }
  return out;
}

Result<Cost> cost_of_rl_step(const CostContext& context, const Request& r) {
  RlSubject s;
  TEMPER_TRY(s.hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(s.model, model_of(context, r.params));
  TEMPER_TRY_STATUS(read_rl_work(r.params, s));
  TEMPER_TRY_STATUS(read_rl_layout(r, s));
  TEMPER_TRY(const double steps, r.params.number("steps", 100));
  const ClusterWork packed = packed_work(s);
  TEMPER_TRY_STATUS(check_layout(*s.model,
                                 s.plan.training.devices(),
                                 s.plan.training,
                                 rl_train_shape(*s.model, packed, s.plan.training)));
  const ClusterIteration it = cluster_iteration(*s.model, *s.hardware, s.plan, packed);
  TEMPER_TRY(const RlRollout rollout, rollout_of(s));
  const double generation = rollout.prefill + rollout.decode;
  const double logprobs = s.passes * it.reference;
  const double training = logprobs + it.update;
  const double step = s.plan.cards == Cards::Separate
                          ? it.reshard + std::max(generation + it.reward, training)
                          : it.reshard + generation + it.reward + training + it.offload;
  const double tokens = s.work.sequences() * (s.work.prompt + s.mean);
  Cost out;
  out.metrics = {
      {"time",
       "s",
       step,
       s.plan.cards == Cards::Separate ? std::vector<Term>{}
                                       : std::vector<Term>{{"reshard", 1, it.reshard, ""},
                                                           {"prefill", 1, rollout.prefill, ""},
                                                           {"decode", 1, rollout.decode, ""},
                                                           {"reward", 1, it.reward, ""},
                                                           {"log-probs", 1, logprobs, ""},
                                                           {"update", 1, it.update, ""},
                                                           {"offload", 1, it.offload, ""}}},
      {"rollout", "s", generation, {}},
      {"logprobs", "s", it.reference, {}},
      {"update", "s", it.update, {}},
      {"reward", "s", it.reward, {}},
      {"reshard", "s", it.reshard, {}},
      {"run_time", "s", steps * step, {}},
      {"throughput", "count", tokens / step, {}},
      {"throughput_per_device", "count", tokens / step / as_double(s.devices), {}},
      {"update_throughput_per_card", "count", tokens / it.update / as_double(r.cards), {}},
      {"throughput_per_card", "count", tokens / step / as_double(r.cards), {}},
      {"generation_throughput", "count", s.work.sequences() * s.mean / generation, {}},
      {"generation_throughput_per_card", "count", tokens / generation / as_double(r.cards), {}}};
  return out;
}

constexpr std::array kTrainingKinds{
    Kind{"rl_step",
         "One RL step whose responses have a spread of lengths, colocated or one step off.",
         "model; prompts; group; prompt_len; mean_out; max_out (default: mean_out); "
         "p99_over_median=1; logprob_passes=1; rollout_devices; rollout_tp; rollout_ep; weights; "
         "draft=none|mtp|eagle|ngram; depth; tokens_per_step=1; train_tp; train_pp; train_cp; "
         "train_ep; zero=1|3; host=tuned|untuned; steps=100",
         cost_of_rl_step},
    Kind{"training_run",
         "A training step as frameworks report it: number formats, and frozen weights with LoRA.",
         "the parameters of train_iteration; "
         "precision=bf16|fp16|fp8|fp8_block|mxfp8|int8; lora=RANK, of every linear layer; "
         "head=whole|chunked",
         cost_of_training_run},
};

}  // namespace

std::span<const Kind> training_kinds() {
  return kTrainingKinds;
}

}  // namespace temper::sim_hw
