// Request kinds of whole steps on one device: decode_step, prefill, logprob_pass, train_step.
#include "sim_hw/memory/torch_training.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/queries/explain.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"
#include "sim_hw/steps/decode_memory.hpp"
#include "sim_hw/steps/parallel_decode.hpp"
#include "sim_hw/steps/rollout_layout.hpp"
#include "sim_hw/steps/steps.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace temper::sim_hw {
namespace {

/// Inputs of every step.
struct StepSubject {
  const HardwareSpec* hardware = nullptr;
  const ModelSpec* spec = nullptr;
  Device device;
  StepModel model;
};

Result<StepSubject> subject(const CostContext& context, const Request& r) {
  StepSubject s;
  TEMPER_TRY(s.hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(s.spec, model_of(context, r.params));
  s.device = make_device(*s.hardware);
  s.model = make_step_model(*s.spec);
  return s;
}

/// Refuses more than one card, which these kinds would ignore.
Status one_card(const Request& r) {
  if (r.cards == 1)
    return {};
  return invalid_input(fmt::format(
      "cards={}: this kind models one device, expected 1; for more use decode_step with tp and "
      "dp, train_iteration or rl_iteration",
      r.cards));
}

Result<PassShape> pass_shape(const Params& p) {
  PassShape shape;
  TEMPER_TRY(shape.batch, at_least_one(p, "batch"));
  TEMPER_TRY(shape.seq, at_least_one(p, "seq"));
  return shape;
}

/// Treatment of a step that exceeds the device memory.
enum class Overflow { Refuse, Report };

Result<Overflow> overflow_of(const Params& p) {
  return one_of<Overflow>(
      p, "memory", {{"refuse", Overflow::Refuse}, {"report", Overflow::Report}});
}

/// Defaults of a decode step in a rollout whose row does not state them: the mean context of
/// prompts of 75 and responses of 3040 tokens, and graphs captured up to 64 sequences per replica.
constexpr std::int64_t kRolloutContext = 1595;
constexpr double kLargestGraph = 64;

/// The form of published rollouts: `batch_per_dp` sequences on each of `dp` replicas.
Result<Cost> cost_of_parallel_decode(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const ModelSpec* spec, model_of(context, r.params));
  RolloutLayout layout;
  ReplicaShape shape;
  TEMPER_TRY(shape.batch,
             at_least_one(r.params, r.params.has("batch_per_dp") ? "batch_per_dp" : "batch"));
  TEMPER_TRY(const std::int64_t length, r.params.integer("context", kRolloutContext));
  if (length < 1)
    return invalid_input(fmt::format("context={}: must be 1 or more", length));
  TEMPER_TRY(const std::int64_t tp, r.params.integer("tp", 1));
  TEMPER_TRY(const std::int64_t dp, r.params.integer("dp", 1));
  TEMPER_TRY(const std::int64_t ep, r.params.integer("ep", 1));
  TEMPER_TRY_STATUS(check_rollout_layout(*spec, *hardware, r.cards, {tp, dp, ep}));
  layout = {static_cast<double>(tp), static_cast<double>(dp), static_cast<double>(ep)};
  shape.context = static_cast<double>(length);
  TEMPER_TRY(const Overflow overflow, overflow_of(r.params));
  if (overflow == Overflow::Refuse)
    TEMPER_TRY_STATUS(
        check_decode_memory(*spec, *hardware, {tp, dp, ep}, shape.batch, shape.context));
  TEMPER_TRY(shape.padded,
             one_of<double>(
                 r.params,
                 "launch",
                 {{"graph", shape.batch}, {"padded_graph", std::max(kLargestGraph, shape.batch)}}));
  const Device d = make_device(*hardware);
  const Fabric fabric = make_fabric(*hardware);
  const StepModel m = make_step_model(*spec, layout.tp, layout.ep);
  ListSink list;
  visit_parallel_decode(d, fabric, m, layout, shape, list);
  Cost out;
  const double seconds = parallel_decode_seconds(d, fabric, m, layout, shape);
  out.metrics.push_back(time_metric("time", seconds, explain(d, list.terms)));
  out.metrics.push_back({"tokens_per_second", "count", shape.batch * layout.dp / seconds, {}});
  return out;
}

Result<Cost> cost_of_decode(const CostContext& context, const Request& r) {
  for (const char* key : {"batch_per_dp", "tp", "dp", "ep"}) {
    if (r.params.has(key))
      return cost_of_parallel_decode(context, r);
  }
  TEMPER_TRY_STATUS(one_card(r));
  TEMPER_TRY(const StepSubject s, subject(context, r));
  DecodeShape shape;
  TEMPER_TRY(shape.batch, at_least_one(r.params, "batch"));
  TEMPER_TRY(shape.context, at_least_one(r.params, "context"));
  TEMPER_TRY(
      shape.launch,
      one_of<Launch>(r.params, "launch", {{"graph", Launch::Graph}, {"eager", Launch::Eager}}));
  TEMPER_TRY(const Overflow overflow, overflow_of(r.params));
  if (overflow == Overflow::Refuse)
    TEMPER_TRY_STATUS(check_decode_memory(*s.spec, *s.hardware, {}, shape.batch, shape.context));
  ListSink list;
  visit_decode(s.device, s.model, shape.batch, shape.context, list);
  const double seconds = decode_seconds(s.device, s.model, shape);
  Cost out;
  out.metrics.push_back(time_metric("time", seconds, explain(s.device, list.terms)));
  out.metrics.push_back({"tokens_per_second", "count", shape.batch / seconds, {}});
  return out;
}

Status check_pass(const Request& r,
                  const StepSubject& s,
                  const PassShape& shape,
                  CacheRetention cached) {
  TEMPER_TRY(const Overflow overflow, overflow_of(r.params));
  if (overflow == Overflow::Report)
    return {};
  return check_pass_memory(*s.spec, *s.hardware, shape.batch, shape.seq, cached);
}

Result<Cost> cost_of_prefill(const CostContext& context, const Request& r) {
  TEMPER_TRY_STATUS(one_card(r));
  TEMPER_TRY(const StepSubject s, subject(context, r));
  TEMPER_TRY(const PassShape shape, pass_shape(r.params));
  TEMPER_TRY_STATUS(check_pass(r, s, shape, CacheRetention::Kept));
  ListSink list;
  visit_prefill(s.device, s.model, shape, list);
  Cost out;
  out.metrics.push_back(time_metric(
      "time", prefill_seconds(s.device, s.model, shape), explain(s.device, list.terms)));
  return out;
}

Result<Cost> cost_of_logprobs(const CostContext& context, const Request& r) {
  TEMPER_TRY_STATUS(one_card(r));
  TEMPER_TRY(const StepSubject s, subject(context, r));
  TEMPER_TRY(const PassShape shape, pass_shape(r.params));
  TEMPER_TRY_STATUS(check_pass(r, s, shape, CacheRetention::Dropped));
  ListSink list;
  visit_trunk(s.device, s.model, shape, Pass::Forward, list);
  visit_logprob_head(s.device, s.model, shape.batch * shape.seq, Pass::Forward, list);
  Cost out;
  out.metrics.push_back(time_metric(
      "time", logprob_seconds(s.device, s.model, shape), explain(s.device, list.terms)));
  return out;
}

Status check_training_options(const Params& p) {
  const std::string optimizer = p.text("optimizer", "adamw");
  const std::string states = p.text("states", "bf16");
  if (optimizer != "adamw")
    return invalid_input(fmt::format("optimizer={}: expected adamw", optimizer));
  if (states != "bf16")
    return invalid_input(fmt::format("states={}: expected bf16 on one device", states));
  return {};
}

/// The largest batch of this length that fits; 0 if none does.
double fitting_batch(const ModelSpec& model,
                     PassShape shape,
                     Recompute recompute,
                     double capacity) {
  while (shape.batch >= 1 &&
         torch_training_memory(model, shape.batch, shape.seq, recompute).peak() > capacity) {
    shape.batch =
        std::floor(shape.batch * 0.9 < shape.batch - 1 ? shape.batch * 0.9 : shape.batch - 1);
  }
  return shape.batch;
}

Status check_train_memory(const ModelSpec& model,
                          const HardwareSpec& hardware,
                          const PassShape& shape,
                          Recompute recompute) {
  const TorchTrainingMemory memory =
      torch_training_memory(model, shape.batch, shape.seq, recompute);
  const auto capacity = static_cast<double>(hardware.die.memory.count());
  if (memory.peak() <= capacity)
    return {};
  std::string nearest = "train_iteration with zero, tp or pp over more devices";
  if (const double same = fitting_batch(model, shape, recompute, capacity); same >= 1)
    nearest = fmt::format("batch = {:.0f}", same);
  else if (const double full = fitting_batch(model, shape, Recompute::Full, capacity); full >= 1)
    nearest = fmt::format("recompute = full with batch = {:.0f}", full);
  return Error{
      ErrorCode::OutOfMemory,
      fmt::format("memory of a device, {:.2f} GiB = weights, gradients and moments {:.2f} + "
                  "activations {:.2f} + rest {:.2f}, exceeds the {:.2f} GiB of {}; nearest: {}",
                  memory.peak() / kGib,
                  (memory.weights + memory.gradients + memory.moments) / kGib,
                  memory.activations / kGib,
                  (memory.peak() - memory.weights - memory.gradients - memory.moments -
                   memory.activations) /
                      kGib,
                  capacity / kGib,
                  hardware.name,
                  nearest)};
}

Result<Cost> cost_of_train(const CostContext& context, const Request& r) {
  TEMPER_TRY_STATUS(one_card(r));
  TEMPER_TRY(const StepSubject s, subject(context, r));
  TEMPER_TRY(const PassShape shape, pass_shape(r.params));
  TEMPER_TRY(const Recompute recompute,
             one_of<Recompute>(
                 r.params, "recompute", {{"none", Recompute::None}, {"full", Recompute::Full}}));
  TEMPER_TRY_STATUS(check_training_options(r.params));
  ListSink list;
  visit_forward_backward(s.device, s.model, shape, recompute, list);
  const double passes = forward_backward_seconds(s.device, s.model, shape, recompute);
  const double optimizer = optimizer_seconds(s.device, s.model.parameters);
  Cost out;
  Metric forward_backward = time_metric("forward_backward", passes, explain(s.device, list.terms));
  ListSink last;
  last(Op::Optimizer, Pass::Forward, 1, optimizer, {s.model.parameters, 0, 0});
  Metric step = time_metric("optimizer", optimizer, explain(s.device, last.terms));
  Metric time{"time", "s", passes + optimizer, forward_backward.terms};
  time.terms.insert(time.terms.end(), step.terms.begin(), step.terms.end());
  out.metrics = {std::move(time), std::move(forward_backward), std::move(step)};
  const TorchTrainingMemory memory =
      torch_training_memory(*s.spec, shape.batch, shape.seq, recompute);
  TEMPER_TRY(const Overflow overflow, overflow_of(r.params));
  if (overflow == Overflow::Refuse)
    TEMPER_TRY_STATUS(check_train_memory(*s.spec, *s.hardware, shape, recompute));
  Metric peak{"peak_memory", "B", memory.peak(), {}};
  for (const auto& [name, bytes] : memory.entries())
    peak.terms.push_back({std::string(name), 1, bytes, ""});
  out.metrics.push_back(std::move(peak));
  return out;
}

Result<Cost> cost_of_weight_copy(const CostContext& context, const Request& r) {
  TEMPER_TRY(const StepSubject s, subject(context, r));
  Cost out;
  const double seconds = weight_copy_seconds(s.device, s.model);
  out.metrics.push_back(
      time_metric("time",
                  seconds,
                  {{"copy of every tensor",
                    1,
                    seconds,
                    fmt::format("{:.0f} tensors x {:.2f}us + 4B x {:.4g} parameters / {:.2f}TB/s",
                                s.model.layers * kTensorsPerLayer,
                                s.device.k.kernel_latency * 1e6,
                                s.model.parameters,
                                s.device.copy_bandwidth / 1e12)}}));
  return out;
}

constexpr std::array kStepKinds{
    Kind{"decode_step",
         "One token for every sequence of a batch, sampling included.",
         "model; batch; context; launch=graph|eager; memory=refuse|report, or over many devices: "
         "model; batch (of each replica, or batch_per_dp); tp; dp; ep; context=1595; "
         "launch=graph|padded_graph; memory=refuse|report",
         cost_of_decode},
    Kind{"logprob_pass",
         "Forward and log-softmax of every token.",
         "model; batch; seq; memory=refuse|report",
         cost_of_logprobs},
    Kind{"prefill",
         "Forward of every token, logits of the last.",
         "model; batch; seq; memory=refuse|report",
         cost_of_prefill},
    Kind{"train_step",
         "Forward, backward and AdamW on one batch.",
         "model; batch; seq; recompute=none|full; optimizer=adamw; states=bf16; "
         "memory=refuse|report",
         cost_of_train},
    Kind{"weight_copy_same_card",
         "Copy of all weights on one device.",
         "model",
         cost_of_weight_copy},
};

}  // namespace

std::span<const Kind> step_kinds() {
  return kStepKinds;
}

}  // namespace temper::sim_hw
