#include "actors/simulation/role_layouts.hpp"

#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/model/parameters.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/steps/rollout_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace temper::actors {
namespace {

using sim_hw::as_double;

std::int64_t devices_of(const SimulatedRun& s, std::int64_t cards) {
  return cards * s.cluster.dies_per_card;
}

/// Devices of the trainer, whichever role is selected.
std::int64_t trainer_devices(const SimulatedRun& s) {
  return s.trainer_cards * hardware_of(s, RoleKind::Trainer).dies_per_card;
}

/// The largest divisor of `whole` that is at most `limit`; at least 1. Requires: whole >= 1.
std::int64_t largest_divisor(std::int64_t whole, std::int64_t limit) {
  for (std::int64_t d = std::min(whole, limit); d > 1; --d) {
    if (whole % d == 0)
      return d;
  }
  return 1;
}

sim_hw::SequenceParallel sequence_parallel(std::int64_t tp) {
  return tp > 1 ? sim_hw::SequenceParallel::On : sim_hw::SequenceParallel::Off;
}

/// The trainer's layout without data parallelism.
sim_hw::Layout training_cuts(const TrainerEngineConfig& c) {
  sim_hw::Layout layout;
  layout.tp = c.tp;
  layout.pp = c.pp;
  layout.vpp = c.vpp;
  layout.ep = c.ep;
  layout.cp = c.cp;
  layout.zero = sim_hw::Zero::Optimizer;
  layout.sequence_parallel = sequence_parallel(c.tp);
  layout.layer_balance = c.layer_balance;
  return layout;
}

/// Without the treatment of activations.
sim_hw::TrainShape unplanned_shape(const SimulatedRun& s,
                                   const sim_hw::Layout& layout,
                                   std::int64_t micro_batches,
                                   Tokens tokens) {
  sim_hw::TrainShape shape = packed_shape(s, layout, micro_batches, tokens);
  shape.mechanisms = s.config.trainer.mechanisms;
  shape.adapter = s.adapter;
  return shape;
}

/// The treatment of activations for the longest micro-batch. Requires: a layout that divides the
/// model and its cards.
sim_hw::TrainShape longest_shape(const SimulatedRun& s, const sim_hw::Layout& layout) {
  sim_hw::TrainShape shape = unplanned_shape(s, layout, 2 * layout.pp, largest_micro_batch(s));
  shape.expert_imbalance = largest_imbalance(s, layout);
  const sim_hw::HardwareSpec& hardware = hardware_of(s, RoleKind::Trainer);
  const sim_hw::ModelSpec model = trained_model(s);
  const sim_hw::Device device =
      sim_hw::device_under(shape.mechanisms, sim_hw::make_device(hardware));
  const sim_hw::Fabric fabric = sim_hw::make_fabric(hardware);
  sim_hw::MemoryLimits limits = sim_hw::memory_limits(hardware);
  const sim_hw::Ledger state = sim_hw::worst_train_ledger(model, layout, shape);
  limits.device -= 2 * sim_hw::kFrameworkReserve;
  limits.host -= state.weights + state.optimizer;
  if (s.config.trainer.optimizer_on_host)  // The ledger counts it on the device.
    limits.device += state.optimizer;
  return sim_hw::with_activations(
      {model, device, fabric, layout, shape}, limits, s.config.trainer.activations);
}

Status check_speculation(const SimulationSettings& s) {
  using sim_hw::Draft;
  const SpeculationConfig& c = s.config.rollout.speculation;
  if (c.depth == 0 && c.method != Draft::Mtp && c.method != Draft::None) {
    return invalid_input(
        fmt::format("speculation.method = {}, but speculation.depth = 0, so that nothing is "
                    "drafted; nearest: depth = 1, or method = none",
                    name_of(c.method)));
  }
  if (c.depth == 0 && c.disable_by_batch_size) {
    return invalid_input(
        fmt::format("speculation.disable_by_batch_size = {}, but speculation.depth = 0, so that "
                    "there is nothing to disable; nearest: depth = 1, or no disable_by_batch_size",
                    *c.disable_by_batch_size));
  }
  if (c.depth == 0 || c.method == Draft::None)
    return {};
  const auto found = [&](std::string_view what) {
    return invalid_input(fmt::format("speculation.depth = {}, but {}", c.depth, what));
  };
  if (c.method == Draft::Mtp && s.model.mtp_layers == 0)
    return found(s.model.name + " has no MTP modules; nearest: depth = 0");
  if (c.method == Draft::Mtp && !s.config.trainer.mtp) {
    return found(
        "the trainer does not train the MTP modules, so that they would not follow the weights; "
        "nearest: simulation.trainer.mtp = true, or depth = 0");
  }
  if (c.acceptance <= 0)
    return found("speculation.acceptance = 0: expected the share of drafts that are accepted");
  return {};
}

}  // namespace

Tokens longest(const LengthConfig& c) {
  switch (c.kind) {
    case LengthKind::Constant:
      return std::min(c.cap, Tokens(static_cast<std::int64_t>(std::ceil(c.mean))));
    case LengthKind::Lognormal:
      return c.cap;
    case LengthKind::Histogram:
      return std::min(c.cap, c.width * static_cast<std::int64_t>(c.weights.size()));
    case LengthKind::Trace:
      return c.lengths.empty() ? c.cap
                               : std::min(c.cap, Tokens(*std::ranges::max_element(c.lengths)));
  }
  return c.cap;
}

Tokens largest_micro_batch(const SimulatedRun& s) {
  return std::max(Tokens(s.config.trainer.micro_batch_tokens),
                  longest(s.config.prompt) + longest(s.config.response));
}

sim_hw::ModelSpec trained_model(const SimulatedRun& s) {
  return s.config.trainer.mtp ? s.model : served_model(s);
}

sim_hw::ModelSpec served_model(const SimulatedRun& s) {
  sim_hw::ModelSpec model = s.model;
  model.mtp_layers = 0;
  return model;
}

sim_hw::ModelSpec engine_model(const SimulatedRun& s) {
  return engine_drafts(s).by == sim_hw::Draft::Mtp ? s.model : served_model(s);
}

std::int64_t trained_parameters(const SimulatedRun& s) {
  return s.adapter ? sim_hw::adapter_parameters(trained_model(s), *s.adapter)
                   : sim_hw::count_parameters(s.model).total();
}

sim_hw::TrainShape packed_shape(const SimulatedRun& s,
                                const sim_hw::Layout& layout,
                                std::int64_t micro_batches,
                                Tokens tokens) {
  sim_hw::TrainShape shape = sim_hw::default_shape(s.model);
  const std::int64_t cut = layout.tp * layout.cp;
  shape.micro_batch = 1;
  shape.global_batch = micro_batches * layout.dp;
  shape.seq = (tokens.count() + cut - 1) / cut * cut;
  shape.recompute = sim_hw::Recompute::Full;
  shape.states.gradient = 2;
  return shape;
}

sim_hw::Layout trainer_layout(const SimulatedRun& s) {
  sim_hw::Layout layout = training_cuts(s.config.trainer);
  layout.dp = trainer_devices(s) / (layout.tp * layout.pp * layout.cp);
  return layout;
}

sim_hw::TrainShape training_shape(const SimulatedRun& s,
                                  const sim_hw::Layout& layout,
                                  std::int64_t micro_batches,
                                  Tokens tokens) {
  sim_hw::TrainShape shape = unplanned_shape(s, layout, micro_batches, tokens);
  if (s.config.trainer.activations != sim_hw::ActivationPolicy::Full) {
    const sim_hw::TrainShape longest = longest_shape(s, layout);
    shape.recompute = longest.recompute;
    shape.activations = longest.activations;
  }
  return shape;
}

Status check_trainer(const SimulatedRun& s) {
  const sim_hw::Layout layout = trainer_layout(s);
  const std::int64_t devices = trainer_devices(s);
  if (layout.dp < 1) {
    return invalid_input(fmt::format("tp * pp * cp = {} * {} * {} = {} devices, but there are {}",
                                     layout.tp,
                                     layout.pp,
                                     layout.cp,
                                     layout.tp * layout.pp * layout.cp,
                                     devices));
  }
  if (s.config.trainer.mtp && s.model.mtp_layers == 0) {
    return invalid_input(
        fmt::format("mtp = true, but {} has no MTP modules; nearest: mtp = false", s.model.name));
  }
  return sim_hw::check_layout(trained_model(s),
                              devices,
                              layout,
                              unplanned_shape(s, layout, 2 * layout.pp, largest_micro_batch(s)));
}

sim_hw::Layout reference_layout(const SimulationSettings& s) {
  const ReferenceEngineConfig& own = s.config.reference;
  sim_hw::Layout layout = training_cuts(s.config.trainer);
  const std::int64_t devices = devices_of(s, s.cards);
  layout.vpp = 1;
  layout.tp = std::gcd(own.tp.value_or(std::gcd(layout.tp, s.model.heads)), devices);
  layout.sequence_parallel = sequence_parallel(layout.tp);
  layout.cp = std::gcd(own.cp.value_or(layout.cp), devices / layout.tp);
  layout.pp = largest_divisor(devices / (layout.tp * layout.cp),
                              std::min(own.pp.value_or(layout.pp), s.model.layers));
  layout.dp = devices / (layout.tp * layout.pp * layout.cp);
  layout.ep = own.ep.value_or(s.model.moe ? layout.ep : 1);
  if (s.model.moe) {
    std::int64_t ep = std::min(layout.ep, layout.stage_devices());
    while (ep > 1 && (s.model.moe->experts % ep != 0 || layout.stage_devices() % ep != 0))
      --ep;
    layout.ep = ep;
  }
  return layout;
}

Status check_reference(const SimulationSettings& s) {
  const sim_hw::Layout layout = reference_layout(s);
  return sim_hw::check_layout(served_model(s),
                              devices_of(s, s.cards),
                              layout,
                              packed_shape(s, layout, 2 * layout.pp, largest_micro_batch(s)));
}

sim_hw::Drafts engine_drafts(const SimulatedRun& s) {
  const SpeculationConfig& c = s.config.rollout.speculation;
  if (c.depth == 0 || c.method == sim_hw::Draft::None)
    return {};
  return {c.method, as_double(c.depth)};
}

sim_hw::RolloutLayout rollout_layout(const SimulationSettings& s) {
  const RolloutEngineConfig& c = s.config.rollout;
  sim_hw::RolloutLayout layout;
  layout.tp = as_double(c.tp);
  layout.dp = as_double(devices_of(s, s.cards - c.prefill_cards) / c.tp);
  layout.ep = as_double(c.ep);
  layout.redundant_experts = c.redundant_experts;
  return layout;
}

SimulationSettings prefill_instance(const SimulationSettings& s) {
  SimulationSettings out = s;
  RolloutEngineConfig& c = out.config.rollout;
  out.cards = std::exchange(c.prefill_cards, 0);
  out.rollout_cards = s.rollout_cards / s.cards * out.cards;
  out.concurrency = 0;  // No vocabulary head.
  c.ep = s.model.moe
             ? std::gcd(s.model.moe->experts + c.redundant_experts, devices_of(s, out.cards))
             : 1;
  return out;
}

Status check_rollout(const SimulationSettings& s) {
  const RolloutEngineConfig& c = s.config.rollout;
  TEMPER_TRY_STATUS(check_speculation(s));
  if (c.tp < 1)
    return invalid_input("tp=0: must be 1 or more; nearest: tp=1");
  if (c.prefill_cards < 0 || (c.prefill_cards > 0 && c.prefill_cards >= s.cards)) {
    return invalid_input(
        fmt::format("prefill_cards={} leaves none of the {} cards of an engine to decode; nearest: "
                    "prefill_cards={}",
                    c.prefill_cards,
                    s.cards,
                    s.cards / 2));
  }
  const std::int64_t decoding = s.cards - c.prefill_cards;
  TEMPER_TRY_STATUS(sim_hw::check_rollout_layout(
      s.model,
      s.cluster,
      decoding,
      {c.tp, devices_of(s, decoding) / c.tp, c.ep, c.redundant_experts}));
  if (c.prefill_cards == 0)
    return {};
  const SimulationSettings prefill = prefill_instance(s);
  Status status = sim_hw::check_rollout_layout(
      s.model,
      s.cluster,
      prefill.cards,
      {c.tp, devices_of(s, prefill.cards) / c.tp, prefill.config.rollout.ep, c.redundant_experts});
  if (!status)
    return invalid_input(
        fmt::format("prefill_cards={}: {}", c.prefill_cards, status.error().context));
  return {};
}

}  // namespace temper::actors
