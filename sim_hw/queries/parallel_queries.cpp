// Request kinds of a layout over many devices: `train_iteration` and `memory`.
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/parallel/layout_request.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace temper::sim_hw {

namespace {

Metric ledger_metric(std::string name, const Ledger& ledger) {
  Metric metric{std::move(name), "B", ledger.total(), {}};
  for (const auto& [entry, bytes] : ledger.entries()) {
    if (bytes > 0)
      metric.terms.push_back({std::string(entry), 1, bytes, ""});
  }
  return metric;
}

std::string bubble_equation(const TrainTime& time, const TrainRequest& q) {
  if (q.shape.mechanisms.schedule == PipelineSchedule::DualPipe) {
    return fmt::format("(pp / 2 - 1) = {} x (two passes + a backward - 3 x its weight gradients)",
                       as_double(q.layout.pp) / 2 - 1);
  }
  if (time.hidden > 0) {
    return fmt::format(
        "time of {} other stages, with nothing hidden, / {} chunks", q.layout.pp - 1, q.layout.vpp);
  }
  return fmt::format("({:.4g} ms on all {} stages - {:.4g} ms on the slowest) / {} chunks",
                     time.all_stages * 1e3,
                     q.layout.pp,
                     time.stage.total() / as_double(q.shape.micro_batches(q.layout)) * 1e3,
                     q.layout.vpp);
}

Metric train_time_metric(const TrainTime& time, const TrainRequest& q) {
  Metric metric{"time", "s", time.total(), {}};
  const double micro_batches = as_double(q.shape.micro_batches(q.layout));
  const auto entries = time.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [name, seconds] = entries[i];
    if (seconds <= 0)
      continue;
    Term term{std::string(name), 1, seconds, ""};
    if (i < TrainTime::kStageEntries) {
      term.count = micro_batches;
      term.equation = fmt::format("{} micro-batches x {:.4g} ms on the slowest stage",
                                  micro_batches,
                                  seconds / micro_batches * 1e3);
    } else if (name == "pipeline bubble") {
      term.equation = bubble_equation(time, q);
    } else if (name == "data-parallel communication") {
      term.equation = fmt::format("exposed part of {} replicas (experts: {}) beside a micro-batch",
                                  q.layout.dp * q.layout.cp,
                                  q.layout.expert_dp());
    }
    metric.terms.push_back(std::move(term));
  }
  return metric;
}

Status refuse_overflow(const Request& request,
                       const ModelSpec& model,
                       const HardwareSpec& hardware,
                       const TrainRequest& q) {
  TEMPER_TRY(const bool refuses,
             one_of<bool>(request.params,
                          "memory",
                          {{"report", false}, {"refuse", true}},
                          request.kind == "memory" ? "report" : "refuse"));
  if (!refuses)
    return {};
  const std::int64_t cards =
      (q.layout.devices() + hardware.dies_per_card - 1) / hardware.dies_per_card;
  return check(model, hardware, cards, q.layout, q.shape);
}

Result<Cost> cost_of_train_iteration(const CostContext& context, const Request& request) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(request.hardware));
  TEMPER_TRY(const ModelSpec* model, model_of(context, request.params));
  TEMPER_TRY(const TrainRequest q, train_request(request.params, *model, *hardware, request.cards));
  TEMPER_TRY_STATUS(refuse_overflow(request, *model, *hardware, q));
  const Device device = make_device(*hardware);
  const Fabric fabric = make_fabric(*hardware);
  const TrainTime time = train_iteration_time(*model, device, fabric, q.layout, q.shape);
  const double tokens = as_double(q.shape.global_batch * q.shape.seq);
  const double peak = as_double(q.layout.devices()) * device.matrix_peak;
  Cost out;
  out.metrics.push_back(train_time_metric(time, q));
  out.metrics.push_back({"tokens_per_second", "count", tokens / time.total(), {}});
  out.metrics.push_back({"mfu", "count", model_flops(*model, q.shape) / time.total() / peak, {}});
  if (time.hidden > 0)
    out.metrics.push_back({"hidden_expert_communication", "s", time.hidden, {}});
  out.metrics.push_back(
      {"param_and_optimizer_memory", "B", layer_state_bytes(*model, q.layout, q.shape), {}});
  out.metrics.push_back(
      {"activation_memory", "B", train_ledger(*model, q.layout, q.shape, 0).activations, {}});
  out.metrics.push_back(
      ledger_metric("peak_memory", worst_train_ledger(*model, q.layout, q.shape)));
  if (const double swapped = swapped_bytes({*model, device, fabric, q.layout, q.shape});
      swapped > 0)
    out.metrics.push_back({"swapped_activations", "B", swapped, {}});
  return out;
}

Result<Cost> placed_cost(const HardwareSpec& hardware, const PlacedLedger& placed) {
  Cost out;
  out.metrics.push_back(ledger_metric("device_memory", placed.device));
  Ledger host = placed.host;
  const double devices = as_double(hardware.devices_per_node());
  host.weights *= devices;
  host.optimizer *= devices;
  out.metrics.push_back(ledger_metric("host_memory", host));
  return out;
}

Result<Cost> trainer_memory(const Request& request,
                            const ModelSpec& model,
                            const HardwareSpec& hardware) {
  TEMPER_TRY(const TrainRequest q, train_request(request.params, model, hardware, request.cards));
  TEMPER_TRY_STATUS(refuse_overflow(request, model, hardware, q));
  const Ledger ledger = worst_train_ledger(model, q.layout, q.shape);
  TEMPER_TRY(const TrainerState state,
             one_of<TrainerState>(request.params,
                                  "state",
                                  {{"active", TrainerState::Active},
                                   {"optimizer_on_host", TrainerState::OptimizerOnHost},
                                   {"asleep", TrainerState::Asleep}}));
  return placed_cost(hardware, place(ledger, state));
}

Result<Cost> engine_memory(const Request& request,
                           const ModelSpec& model,
                           const HardwareSpec& hardware) {
  InferenceShape shape;
  TEMPER_TRY(shape.cached_tokens, request.params.number("cached_tokens", 0));
  TEMPER_TRY(shape.batch_tokens, request.params.number("batch_tokens", 0));
  TEMPER_TRY(shape.logit_rows, request.params.number("logit_rows", 0));
  TEMPER_TRY(shape.weight_bytes, request.params.number("weight_bytes", 2));
  TEMPER_TRY(shape.kv_bytes, request.params.number("kv_bytes", 2));
  TEMPER_TRY(const Layout layout,
             layout_of(request.params, model, hardware, request.cards, Recompute::None));
  TrainShape one;
  one.global_batch = layout.dp;
  one.seq = layout.tp * layout.cp;
  TEMPER_TRY_STATUS(check_layout(model, layout.devices(), layout, one));
  const Ledger ledger = inference_ledger(model, layout, shape);
  TEMPER_TRY(const EngineState state,
             one_of<EngineState>(request.params,
                                 "state",
                                 {{"active", EngineState::Active},
                                  {"asleep", EngineState::Asleep},
                                  {"discarded", EngineState::Discarded}}));
  return placed_cost(hardware, place(ledger, state));
}

Result<Cost> cost_of_memory(const CostContext& context, const Request& request) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(request.hardware));
  TEMPER_TRY(const ModelSpec* model, model_of(context, request.params));
  TEMPER_TRY(
      const bool trains,
      one_of<bool>(
          request.params, "role", {{"train", true}, {"rollout", false}, {"reference", false}}));
  return trains ? trainer_memory(request, *model, *hardware)
                : engine_memory(request, *model, *hardware);
}

constexpr std::array kParallelKinds{
    Kind{
        "memory",
        "Bytes of the fullest device and of a host, by role and state.",
        "model; role=train|rollout|reference; state=active|optimizer_on_host|asleep|discarded; the "
        "layout and shape of train_iteration; for engines cached_tokens; batch_tokens; logit_rows; "
        "weight_bytes; kv_bytes; memory=report|refuse",
        cost_of_memory},
    Kind{
        "train_iteration",
        "One training step of a model laid out over many devices.",
        "model; tp; pp; vpp (or interleave); ep; expert_tp; cp; dp (default: what the cards "
        "leave); zero=0|1|2|3; sequence_parallel=on|off (default: on with selective recompute or "
        "experts); batch (or global_batch); mbs (or micro_batch); seq; "
        "recompute=none|selective|full; recompute_every; attention=fused|unfused; dtype=bf16|fp16; "
        "states=mixed|bf16; expert_imbalance; attention_imbalance; expert_overlap=off|on; "
        "layer_balance=last_short|even|counted; activations=as_recompute|chosen; "
        "expert_path=auto|flat|hierarchical|gathered; token_copies=per_expert|per_device; "
        "schedule=1f1b|dualpipe|adaptive; operators=fused|plain; host_dispatch=ahead|eager|tuned; "
        "split_counts=known|fetched_once|fetched_each; "
        "balance_loss=micro_batch|expert_group|everywhere; memory=refuse|report",
        cost_of_train_iteration},
};

}  // namespace

std::span<const Kind> parallel_kinds() {
  return kParallelKinds;
}

}  // namespace temper::sim_hw
