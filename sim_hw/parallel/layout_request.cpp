#include "sim_hw/parallel/layout_request.hpp"

#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/request/choice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::sim_hw {

namespace {

/// Chooses the activation plan if the request asks for it.
Status choose(const Params& params,
              const ModelSpec& model,
              const HardwareSpec& hardware,
              TrainRequest& question) {
  TEMPER_TRY(const bool chosen,
             one_of<bool>(params, "activations", {{"as_recompute", false}, {"chosen", true}}));
  if (!chosen)
    return {};
  if (question.shape.recompute == Recompute::Full)
    return invalid_input(
        "activations=chosen: recompute=full leaves nothing to choose; nearest: recompute=none");
  const Device device = device_under(question.shape.mechanisms, make_device(hardware));
  const Fabric fabric = make_fabric(hardware);
  const std::optional<ActivationPlan> plan = choose_activations(
      {model, device, fabric, question.layout, question.shape}, memory_limits(hardware));
  if (plan)
    question.shape.activations = *plan;
  return {};  // Without a plan, the memory check reports by how much it does not fit.
}

/// Bounds that keep products of counts within 64 bits and searches short.
constexpr std::int64_t kMostRanks = 1'000'000;
constexpr std::int64_t kMostSequences = 1'000'000'000;
constexpr std::int64_t kMostMicroBatch = 65'536;

/// A count from 1 to `most`.
Result<std::int64_t> count_of(const Params& params,
                              std::string_view key,
                              std::int64_t most,
                              std::int64_t otherwise) {
  TEMPER_TRY(const std::int64_t value, params.integer(key, otherwise));
  if (value < 1 || value > most) {
    return invalid_input(fmt::format(
        "{} = {}: must be 1 to {}; nearest: {} = {}", key, value, most, key, value < 1 ? 1 : most));
  }
  return value;
}

/// Reads either of two names of one parameter.
Result<std::int64_t> count_of_either(const Params& params,
                                     std::array<std::string_view, 2> keys,
                                     std::int64_t most,
                                     std::int64_t otherwise) {
  return count_of(params, params.has(keys[1]) ? keys[1] : keys[0], most, otherwise);
}

Result<Mechanisms> mechanisms_of(const Params& params) {
  Mechanisms m;
  TEMPER_TRY(m.expert_path, choice(params, "expert_path", m.expert_path));
  TEMPER_TRY(m.token_copies, choice(params, "token_copies", m.token_copies));
  TEMPER_TRY(m.schedule, choice(params, "schedule", m.schedule));
  TEMPER_TRY(m.operators, choice(params, "operators", m.operators));
  TEMPER_TRY(m.host_dispatch, choice(params, "host_dispatch", m.host_dispatch));
  TEMPER_TRY(m.split_counts, choice(params, "split_counts", m.split_counts));
  TEMPER_TRY(m.balance_loss, choice(params, "balance_loss", m.balance_loss));
  return m;
}

}  // namespace

Result<TrainShape> train_shape(const Params& params, const ModelSpec& model) {
  TrainShape shape = default_shape(model);
  TEMPER_TRY(shape.micro_batch,
             count_of_either(params, {"mbs", "micro_batch"}, kMostMicroBatch, 1));
  TEMPER_TRY(shape.global_batch,
             count_of_either(params, {"batch", "global_batch"}, kMostSequences, shape.micro_batch));
  TEMPER_TRY_STATUS(params.integer("seq"));  // Required: has no default.
  TEMPER_TRY(shape.seq, count_of(params, "seq", kMostSequences, 1));
  TEMPER_TRY(shape.recompute, choice(params, "recompute", Recompute::None));
  TEMPER_TRY(shape.recompute_every, params.integer("recompute_every", 1));
  TEMPER_TRY(shape.expert_imbalance, params.number("expert_imbalance", 1));
  TEMPER_TRY(shape.attention_imbalance, params.number("attention_imbalance", 1));
  if (shape.expert_imbalance < 1 || shape.attention_imbalance < 1 || shape.recompute_every < 1) {
    return invalid_input(fmt::format(
        "expert_imbalance={}, attention_imbalance={}, recompute_every={}: expected at least 1 each",
        shape.expert_imbalance,
        shape.attention_imbalance,
        shape.recompute_every));
  }
  TEMPER_TRY(shape.mechanisms, mechanisms_of(params));
  TEMPER_TRY(shape.attention,
             one_of<AttentionKernel>(
                 params,
                 "attention",
                 {{"fused", AttentionKernel::Fused}, {"unfused", AttentionKernel::Unfused}},
                 shape.attention == AttentionKernel::Fused ? "fused" : "unfused"));
  TEMPER_TRY(
      shape.expert_overlap,
      one_of<ExpertOverlap>(
          params, "expert_overlap", {{"off", ExpertOverlap::Off}, {"on", ExpertOverlap::On}}));
  TEMPER_TRY(shape.format,
             one_of<NumberFormat>(params,
                                  "dtype",
                                  {{"bf16", NumberFormat::Bf16}, {"fp16", NumberFormat::Fp16}},
                                  shape.format == NumberFormat::Bf16 ? "bf16" : "fp16"));
  TEMPER_TRY(shape.states,
             one_of<StateBytes>(
                 params, "states", {{"mixed", StateBytes::mixed()}, {"bf16", StateBytes::bf16()}}));
  return shape;
}

Result<Layout> layout_of(const Params& params,
                         const ModelSpec& model,
                         const HardwareSpec& hardware,
                         std::int64_t cards,
                         Recompute recompute) {
  Layout layout;
  TEMPER_TRY(layout.tp, count_of(params, "tp", kMostRanks, 1));
  TEMPER_TRY(layout.pp, count_of(params, "pp", kMostRanks, 1));
  TEMPER_TRY(layout.vpp, count_of_either(params, {"vpp", "interleave"}, kMostRanks, 1));
  TEMPER_TRY(layout.ep, count_of(params, "ep", kMostRanks, 1));
  TEMPER_TRY(layout.expert_tp, count_of(params, "expert_tp", kMostRanks, 1));
  TEMPER_TRY(layout.cp, count_of(params, "cp", kMostRanks, 1));
  const std::int64_t devices = cards * hardware.dies_per_card;
  const std::int64_t others = layout.tp * layout.pp * layout.cp;
  TEMPER_TRY(layout.dp,
             count_of(params, "dp", 20 * kMostRanks, std::max<std::int64_t>(1, devices / others)));
  TEMPER_TRY(layout.zero,
             one_of<Zero>(params,
                          "zero",
                          {{"0", Zero::None},
                           {"1", Zero::Optimizer},
                           {"2", Zero::Gradients},
                           {"3", Zero::Weights}}));
  const bool on =
      layout.tp > 1 && (recompute == Recompute::Selective || (model.moe && layout.expert_tp == 1));
  TEMPER_TRY(layout.sequence_parallel,
             one_of<SequenceParallel>(params,
                                      "sequence_parallel",
                                      {{"off", SequenceParallel::Off},
                                       {"on", SequenceParallel::On},
                                       {"0", SequenceParallel::Off},
                                       {"1", SequenceParallel::On}},
                                      on ? "on" : "off"));
  TEMPER_TRY(layout.layer_balance, choice(params, "layer_balance", layout.layer_balance));
  return layout;
}

Result<TrainRequest> train_request(const Params& params,
                                   const ModelSpec& model,
                                   const HardwareSpec& hardware,
                                   std::int64_t cards) {
  TrainRequest question;
  TEMPER_TRY(question.shape, train_shape(params, model));
  TEMPER_TRY(question.layout, layout_of(params, model, hardware, cards, question.shape.recompute));
  const std::int64_t devices =
      cards == 1 ? question.layout.devices() : cards * hardware.dies_per_card;
  TEMPER_TRY_STATUS(check_layout(model, devices, question.layout, question.shape));
  TEMPER_TRY_STATUS(choose(params, model, hardware, question));
  return question;
}

}  // namespace temper::sim_hw
