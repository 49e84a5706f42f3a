#include "sim_hw/parallel/layout_check.hpp"

#include "sim_hw/layout/stages.hpp"
#include "sim_hw/model/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace temper::sim_hw {

namespace {

/// The value nearest to `wanted` in [1, most] for which `works` is true; 1 if there is none.
template <class F>
std::int64_t nearest(std::int64_t wanted, std::int64_t most, const F& works) {
  wanted = std::clamp<std::int64_t>(wanted, 1, most);
  for (std::int64_t distance = 0; distance < most; ++distance) {
    for (const std::int64_t value : {wanted - distance, wanted + distance}) {
      if (value >= 1 && value <= most && works(value))
        return value;
    }
  }
  return 1;
}

Status positive(std::string_view name, std::int64_t value) {
  if (value >= 1)
    return {};
  return invalid_input(
      fmt::format("{} = {}: expected at least 1; nearest: {} = 1", name, value, name));
}

Status check_tensor(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  const auto works = [&](std::int64_t tp) {
    return divides(tp, model.heads) &&
           (divides(tp, model.kv_heads) || divides(model.kv_heads, tp)) &&
           (model.ffn == 0 || divides(tp, model.ffn));
  };
  const std::int64_t tp = layout.tp;
  if (!works(tp)) {
    const std::string_view what = !divides(tp, model.heads) ? "heads"
                                  : !divides(tp, model.ffn) ? "intermediate columns"
                                                            : "kv_heads";
    const std::int64_t count = !divides(tp, model.heads) ? model.heads
                               : !divides(tp, model.ffn) ? model.ffn
                                                         : model.kv_heads;
    return invalid_input(fmt::format("tp = {} does not divide {} {} of {}; nearest: tp = {}",
                                     tp,
                                     count,
                                     what,
                                     model.name,
                                     nearest(tp, model.heads, works)));
  }
  if (layout.sequence_parallel == SequenceParallel::On && !divides(tp * layout.cp, shape.seq)) {
    return invalid_input(fmt::format(
        "seq = {} is not a multiple of tp * cp = {}, by which sequence parallelism splits "
        "it; nearest: seq = {}",
        shape.seq,
        tp * layout.cp,
        std::max<std::int64_t>(1, shape.seq / (tp * layout.cp)) * tp * layout.cp));
  }
  return {};
}

Status check_chunks(const ModelSpec& model, const Layout& layout) {
  const std::int64_t most = stage_layers(model, layout, 0);
  // With uneven layer balance the chunks of a stage may differ by a layer.
  const bool whole = layout.layer_balance == LayerBalance::LastShort;
  const auto works = [&](std::int64_t v) { return whole ? divides(v, most) : v <= most; };
  if (!works(layout.vpp)) {
    return invalid_input(
        fmt::format("vpp = {} does not divide the {} layers of a stage ({} layers over pp = {}); "
                    "nearest: vpp = {}",
                    layout.vpp,
                    most,
                    model.layers,
                    layout.pp,
                    nearest(layout.vpp, most, works)));
  }
  if (layout.vpp > 1 && layout.pp == 1) {
    return invalid_input(fmt::format(
        "vpp = {} needs pp of at least 2 to interleave chunks, found pp = 1; nearest: vpp = 1",
        layout.vpp));
  }
  return {};
}

/// Requires: check_chunks() accepts the layout; its micro-batches are whole.
Status check_schedule(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  switch (shape.mechanisms.schedule) {
    case PipelineSchedule::OneForwardOneBackward:
      return {};
    case PipelineSchedule::AdaptivePipe: {
      if (layout.vpp > 1)
        return {};
      const std::int64_t most = stage_layers(model, layout, 0);
      const auto works = [&](std::int64_t v) { return v > 1 && divides(v, most); };
      return invalid_input(fmt::format(
          "schedule = adaptive needs a virtual pipeline (vpp and pp of at least 2), found vpp "
          "= {}, pp = {}; nearest: vpp = {}, pp = {}",
          layout.vpp,
          layout.pp,
          most > 1 ? nearest(2, most, works) : 2,
          std::max<std::int64_t>(2, layout.pp)));
    }
    case PipelineSchedule::DualPipe:
      break;
  }
  if (layout.vpp > 1 || layout.pp < 2 || layout.pp % 2 != 0) {
    return invalid_input(
        fmt::format("schedule = dualpipe needs an even number of stages with one chunk each, found "
                    "pp = {}, vpp = {}; nearest: pp = {}, vpp = 1",
                    layout.pp,
                    layout.vpp,
                    std::max<std::int64_t>(2, layout.pp + layout.pp % 2)));
  }
  const std::int64_t micro_batches = shape.micro_batches(layout);
  if (micro_batches < 2 * layout.pp || micro_batches % 2 != 0) {
    const std::int64_t wanted = std::max(2 * layout.pp, micro_batches + micro_batches % 2);
    return invalid_input(fmt::format(
        "schedule = dualpipe needs an even number of micro-batches, at least 2 pp = {}, found {}; "
        "nearest: batch = {} ({} micro-batches)",
        2 * layout.pp,
        micro_batches,
        wanted * layout.dp * shape.micro_batch,
        wanted));
  }
  return {};
}

Status check_pipeline(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  if (layout.pp > model.layers) {
    return invalid_input(
        fmt::format("pp = {} is more stages than the {} layers of {}; nearest: pp = {}",
                    layout.pp,
                    model.layers,
                    model.name,
                    model.layers));
  }
  TEMPER_TRY_STATUS(check_chunks(model, layout));
  const std::int64_t unit = layout.dp * shape.micro_batch;
  if (!divides(unit, shape.global_batch)) {
    return invalid_input(fmt::format(
        "batch = {} is not a multiple of dp * micro-batch = {} * {} = {}; nearest: batch = {}",
        shape.global_batch,
        layout.dp,
        shape.micro_batch,
        unit,
        std::max<std::int64_t>(1, (shape.global_batch + unit / 2) / unit) * unit));
  }
  const std::int64_t micro_batches = shape.micro_batches(layout);
  if (layout.vpp > 1 && !divides(layout.pp, micro_batches)) {
    const std::int64_t rounds =
        std::max<std::int64_t>(1, (micro_batches + layout.pp / 2) / layout.pp);
    return invalid_input(
        fmt::format("{} micro-batches are not a multiple of pp = {}, which interleaving requires; "
                    "nearest: batch = {} ({} micro-batches)",
                    micro_batches,
                    layout.pp,
                    rounds * layout.pp * unit,
                    rounds * layout.pp));
  }
  return check_schedule(model, layout, shape);
}

Status check_experts(const ModelSpec& model, const Layout& layout) {
  if (!model.moe) {
    if (layout.ep != 1) {
      return invalid_input(
          fmt::format("ep = {}, but {} has no experts; nearest: ep = 1", layout.ep, model.name));
    }
    return {};
  }
  const std::int64_t experts = model.moe->experts;
  const std::int64_t stage = layout.stage_devices();
  const auto works = [&](std::int64_t ep) {
    return divides(ep, experts) && divides(ep * layout.expert_tp, stage);
  };
  if (!divides(layout.ep, experts)) {
    return invalid_input(fmt::format("ep = {} does not divide {} experts of {}; nearest: ep = {}",
                                     layout.ep,
                                     experts,
                                     model.name,
                                     nearest(layout.ep, experts, works)));
  }
  if (!divides(layout.expert_tp, model.moe->expert_ffn)) {
    return invalid_input(
        fmt::format("expert_tp = {} does not divide {} intermediate columns of an expert; nearest: "
                    "expert_tp = {}",
                    layout.expert_tp,
                    model.moe->expert_ffn,
                    nearest(layout.expert_tp, model.moe->expert_ffn, [&](std::int64_t t) {
                      return divides(t, model.moe->expert_ffn);
                    })));
  }
  if (!works(layout.ep)) {
    return invalid_input(
        fmt::format("ep * expert_tp = {} * {} does not divide the {} devices of a stage (tp * cp * "
                    "dp = {} * {} * {}); nearest: ep = {}",
                    layout.ep,
                    layout.expert_tp,
                    stage,
                    layout.tp,
                    layout.cp,
                    layout.dp,
                    nearest(layout.ep, experts, works)));
  }
  if (layout.tp > 1 && layout.expert_tp != layout.tp &&
      layout.sequence_parallel == SequenceParallel::Off) {
    return invalid_input(fmt::format(
        "expert_tp = {} with tp = {} needs sequence parallelism; nearest: sequence_parallel = 1 or "
        "expert_tp = {}",
        layout.expert_tp,
        layout.tp,
        layout.tp));
  }
  return {};
}

double gib(double bytes) {
  return bytes / kGib;
}

/// The nearest change that makes the ledger fit, as text; empty if none was found.
std::string fitting_change(const ModelSpec& model,
                           std::int64_t devices,
                           const Layout& layout,
                           const TrainShape& shape,
                           double memory) {
  const auto fits = [&](const Layout& l, const TrainShape& s) {
    return check_layout(model, devices, l, s).has_value() &&
           worst_train_ledger(model, l, s).total() <= memory;
  };
  if (TrainShape other = shape; other.recompute != Recompute::Full) {
    if (other.recompute == Recompute::None && other.attention == AttentionKernel::Unfused) {
      other.recompute = Recompute::Selective;
      if (fits(layout, other))
        return "recompute = selective";
    }
    other.recompute = Recompute::Full;
    if (fits(layout, other))
      return "recompute = full";
  }
  for (std::int64_t b = shape.micro_batch - 1; b >= 1; --b) {
    TrainShape other = shape;
    other.micro_batch = b;
    if (fits(layout, other))
      return fmt::format("micro-batch = {}", b);
  }
  for (const Zero zero : {Zero::Optimizer, Zero::Gradients, Zero::Weights}) {
    Layout other = layout;
    other.zero = zero;
    if (zero > layout.zero && fits(other, shape))
      return fmt::format("zero = {}", static_cast<int>(zero));
  }
  for (std::int64_t factor = 2; factor <= layout.dp; ++factor) {
    Layout other = layout;
    if (!divides(factor, layout.dp))
      continue;
    other.dp = layout.dp / factor;
    other.pp = layout.pp * factor;
    if (fits(other, shape))
      return fmt::format("pp = {} with dp = {}", other.pp, other.dp);
    other.pp = layout.pp;
    other.tp = layout.tp * factor;
    if (fits(other, shape))
      return fmt::format("tp = {} with dp = {}", other.tp, other.dp);
  }
  for (std::int64_t seq = shape.seq / 2; seq >= 1; seq /= 2) {
    TrainShape other = shape;
    other.seq = seq;
    if (fits(layout, other))
      return fmt::format("seq = {}", seq);
  }
  for (std::int64_t factor = 2; factor <= 4096; factor *= 2) {
    Layout other = layout;
    other.pp = layout.pp * factor;
    if (check_layout(model, devices * factor, other, shape).has_value() &&
        worst_train_ledger(model, other, shape).total() <= memory) {
      return fmt::format("pp = {} on {} devices", other.pp, devices * factor);
    }
  }
  return {};
}

Status check_memory(const ModelSpec& model,
                    const HardwareSpec& hardware,
                    std::int64_t devices,
                    const Layout& layout,
                    const TrainShape& shape) {
  const double memory = static_cast<double>(hardware.die.memory.count());
  const Ledger ledger = worst_train_ledger(model, layout, shape);
  if (ledger.total() <= memory)
    return {};
  const auto entries = ledger.entries();
  const auto largest =
      std::ranges::max_element(entries, {}, [](const auto& entry) { return entry.second; });
  const std::string change = fitting_change(model, devices, layout, shape, memory);
  return Error{
      ErrorCode::OutOfMemory,
      fmt::format("memory of the fullest device, {:.2f} GiB = {}, exceeds the {:.2f} GiB of {}; "
                  "largest: {}; nearest: {}",
                  gib(ledger.total()),
                  ledger_text(ledger),
                  gib(memory),
                  hardware.name,
                  largest->first,
                  change.empty() ? "none; no single change of this layout fits" : change)};
}

}  // namespace

std::string ledger_text(const Ledger& ledger) {
  std::string out;
  for (const auto& [name, bytes] : ledger.entries()) {
    if (bytes > 0)
      out += fmt::format("{}{} {:.2f}", out.empty() ? "" : " + ", name, bytes / kGib);
  }
  return out;
}

Status check_layout(const ModelSpec& model,
                    std::int64_t devices,
                    const Layout& layout,
                    const TrainShape& shape) {
  TEMPER_TRY_STATUS(positive("tp", layout.tp));
  TEMPER_TRY_STATUS(positive("pp", layout.pp));
  TEMPER_TRY_STATUS(positive("vpp", layout.vpp));
  TEMPER_TRY_STATUS(positive("ep", layout.ep));
  TEMPER_TRY_STATUS(positive("expert_tp", layout.expert_tp));
  TEMPER_TRY_STATUS(positive("cp", layout.cp));
  TEMPER_TRY_STATUS(positive("dp", layout.dp));
  TEMPER_TRY_STATUS(positive("micro-batch", shape.micro_batch));
  TEMPER_TRY_STATUS(positive("batch", shape.global_batch));
  TEMPER_TRY_STATUS(positive("seq", shape.seq));
  TEMPER_TRY_STATUS(check_tensor(model, layout, shape));
  TEMPER_TRY_STATUS(check_pipeline(model, layout, shape));
  if (!divides(layout.cp, shape.seq)) {
    return invalid_input(fmt::format(
        "cp = {} does not divide seq = {}; nearest: cp = {}",
        layout.cp,
        shape.seq,
        nearest(layout.cp, shape.seq, [&](std::int64_t c) { return divides(c, shape.seq); })));
  }
  TEMPER_TRY_STATUS(check_experts(model, layout));
  if (layout.devices() != devices) {
    const std::int64_t others = layout.tp * layout.pp * layout.cp;
    const std::int64_t dp = std::max<std::int64_t>(1, devices / others);
    return invalid_input(
        fmt::format("tp * pp * cp * dp = {} * {} * {} * {} = {} devices, but there are {}; "
                    "nearest: dp = {} on {} devices",
                    layout.tp,
                    layout.pp,
                    layout.cp,
                    layout.dp,
                    layout.devices(),
                    devices,
                    dp,
                    dp * others));
  }
  return {};
}

Status check(const ModelSpec& model,
             const HardwareSpec& hardware,
             std::int64_t cards,
             const Layout& layout,
             const TrainShape& shape) {
  const std::int64_t devices = cards * hardware.dies_per_card;
  TEMPER_TRY_STATUS(check_layout(model, devices, layout, shape));
  return check_memory(model, hardware, devices, layout, shape);
}

}  // namespace temper::sim_hw
