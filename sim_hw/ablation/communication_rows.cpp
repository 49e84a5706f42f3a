// Ablation rows of expert communication: its paths, its copies, and the share that schedules hide.
#include "sim_hw/ablation/rows.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/balance_loss.hpp"

#include <fmt/format.h>

namespace temper::sim_hw {
namespace {

ExpertExchange exchange_of(const MoeSystem& m) {
  return expert_exchange({*m.model, m.device, m.fabric, m.layout, m.shape});
}

MoeSystem by_path(const MoeSystem& base, ExpertPath path) {
  return with(base, [&](MoeSystem& m) { m.shape.mechanisms.expert_path = path; });
}

MoeSystem scheduled(const MoeSystem& base, PipelineSchedule schedule) {
  return with(base, [&](MoeSystem& m) {
    m.shape.mechanisms.schedule = schedule;
    if (schedule == PipelineSchedule::DualPipe)
      m.layout.vpp = 1;
  });
}

AblationRow exchange_row(const AblationSystems& systems, ExpertPath path, std::string name) {
  const MoeSystem& base = systems.pangu;
  const double flat = exchange_of(by_path(base, ExpertPath::Flat)).seconds;
  const double other = exchange_of(by_path(base, path)).seconds;
  AblationRow row;
  row.mechanism = std::move(name);
  row.conditions = kPanguConditions;
  row.figure = "dispatch and combine of a layer";
  row.off = fmt::format("{:.1f} ms", flat * 1e3);
  row.on = fmt::format("{:.1f} ms", other * 1e3);
  row.predicted = flat / other - 1;
  row.published = systems.published.hierarchical_exchange;
  return row;
}

/// Hidden share of expert communication: in a step on the slowest device, and in chunks that
/// overlap another pass.
struct HiddenShare {
  double step = 0;
  double beside = 0;
};

HiddenShare hidden_share(const MoeSystem& system) {
  const TrainTime time = system.time();
  const LayerCost layer = system.expert_layer();
  return {time.hidden / (time.hidden + time.stage.expert_parallel),
          layer.hidden / (layer.hidden + layer.time.expert_parallel)};
}

/// Micro-batches of a step in which `share` of the communication is hidden, if all overlapped
/// communication is hidden: on each device ((v - 1) p + 1) / v micro-batches run alone.
double micro_batches_for(const Layout& layout, double share) {
  return as_double((layout.vpp - 1) * layout.pp + 1) / as_double(layout.vpp) / (1 - share);
}

AblationRow hidden_row(const AblationSystems& systems) {
  const MoeSystem& base = systems.pangu;
  const double published = systems.published.hidden_communication;
  const HiddenShare full = hidden_share(scheduled(base, PipelineSchedule::AdaptivePipe));
  const HiddenShare chosen =
      hidden_share(with_chosen_activations(scheduled(base, PipelineSchedule::AdaptivePipe)));
  AblationRow row;
  row.mechanism = "Adaptive Pipe: expert communication hidden";
  row.conditions = "as above, with selective recompute and swap";
  row.figure = "share of a step";
  row.off = "0 %";
  row.on = percent_text(chosen.step, 1);
  row.predicted = chosen.step;
  row.published = published;
  row.why = fmt::format(
      "In chunks that overlap another pass {} is hidden, but 17 of the 128 chunks of the last "
      "stage fill and drain the pipeline alone: hiding {:.0f} % of a step takes {:.0f} "
      "micro-batches. With full recompute {} and {}: the backward pass then has dispatch and "
      "combine twice beside one forward pass.",
      percent_text(chosen.beside, 1),
      published * 100,
      micro_batches_for(base.layout, published),
      percent_text(full.beside, 1),
      percent_text(full.step, 1));
  return row;
}

AblationRow weights_row(const AblationSystems& systems) {
  constexpr std::int64_t kStage = 7;
  const auto weights = [&](PipelineSchedule schedule) {
    const MoeSystem m = scheduled(systems.pangu, schedule);
    return train_ledger(*m.model, m.layout, m.shape, kStage).weights;
  };
  const double dual = weights(PipelineSchedule::DualPipe);
  const double adaptive = weights(PipelineSchedule::AdaptivePipe);
  AblationRow row;
  row.mechanism = "Adaptive Pipe against DualPipe: memory";
  row.conditions = kPanguConditions;
  row.figure = "weights of a device in the middle";
  row.off = fmt::format("{:.1f} GiB", dual / kGib);
  row.on = fmt::format("{:.1f} GiB", adaptive / kGib);
  row.predicted = adaptive / dual - 1;
  row.published = systems.published.weights_against_dualpipe;
  row.why =
      "DualPipe holds stages i and p - 1 - i, so weights and gradients double. Optimizer states do "
      "not double, because ZeRO shards them over twice the replicas.";
  return row;
}

// Assumed log spreads: of the mean loads of experts, and of an expert's load between sequences.
constexpr double kMeanSpread = 0.2;
constexpr double kSequenceSpread = 0.5;

/// The system with exchanges as busy as a load-balance loss over this scope leaves them.
MoeSystem under_loss(const MoeSystem& base, BalanceLoss over, double strength) {
  return with(base, [&](MoeSystem& m) {
    m.shape.mechanisms.balance_loss = over;
    const ExchangeShape exchange = exchange_under_loss(
        {as_double(m.shape.micro_batch), m.layout.ep / m.layout.tp, m.layout.dp},
        over,
        kSequenceSpread,
        strength);
    const std::int64_t experts = m.model->moe->experts;
    const ExpertGroup group{m.layout.ep, 1};
    // Without memory of the step before, each step is another layer.
    constexpr int kLayers = 16;
    LoadWalk layers({experts, kLayers, kMeanSpread, 1}, Random(1, "expert loads"));
    Random draws(1, "expert exchanges");
    const ExpertPlacement placement = original_placement(experts, group);
    double sum = 0;
    for (int layer = 0; layer < kLayers; ++layer)
      sum += exchange_imbalance(layers.next(), placement, group, exchange, draws);
    m.shape.expert_imbalance = sum / kLayers;
  });
}

AblationRow balanced_exchange_row(const AblationSystems& systems) {
  const auto loss = [&](BalanceLoss over, double strength) {
    return under_loss(systems.pangu, over, strength);
  };
  const MoeSystem everywhere = loss(BalanceLoss::Everywhere, 4);
  const MoeSystem group = loss(BalanceLoss::ExpertGroup, 4);
  const auto gain = [&](double strength) {
    return effect_text(loss(BalanceLoss::ExpertGroup, strength).tokens_per_second() /
                           loss(BalanceLoss::Everywhere, strength).tokens_per_second() -
                       1);
  };
  AblationRow row = throughput_row(
      "the same, with its effect on loads", kPanguConditions, everywhere, group, std::nullopt);
  row.why = fmt::format(
      "The busiest device of an exchange has {:.2f} times the mean load instead of {:.2f}: a loss "
      "over the {} sequences of the group balances them, one over {} only their mean. Assumed: "
      "log spread {} between sequences, {} of the means, strength 4; with strength 1 the gain is "
      "{}, with 16 {}. Over one device it would be {:.2f} times, at the price of experts that do "
      "not specialize.",
      group.shape.expert_imbalance,
      everywhere.shape.expert_imbalance,
      group.shape.micro_batch * group.layout.ep / group.layout.tp,
      group.shape.micro_batch * group.layout.dp,
      kSequenceSpread,
      kMeanSpread,
      gain(1),
      gain(16),
      loss(BalanceLoss::MicroBatch, 4).shape.expert_imbalance);
  return row;
}

}  // namespace

void add_exchange_rows(const AblationSystems& systems, AblationRows& rows) {
  const MoeSystem& pangu = systems.pangu;
  AblationRow row = exchange_row(
      systems, ExpertPath::Gathered, "hierarchical all-to-all: blocks gathered between nodes");
  row.why =
      "Each token goes to 3 other nodes once instead of 6 of its 8 copies, which halves the "
      "bytes between nodes. The exchange inside a node follows, and takes the rest of the factor "
      "of two. If the port inside the node worked meanwhile, this would be the next row.";
  rows.push_back(row);
  row = exchange_row(
      systems, ExpertPath::Hierarchical, "hierarchical all-to-all: one copy per receiving node");
  row.why =
      "On average 2.7 of 3 other nodes receive a token. Forwarding inside a node overlaps the "
      "transfers between nodes.";
  rows.push_back(row);

  const MoeSystem flat = by_path(systems.deepseek, ExpertPath::Flat);
  row = throughput_row("inter-node merge (MindSpore)",
                       kDeepSeekConditions,
                       flat,
                       by_path(systems.deepseek, ExpertPath::Gathered),
                       systems.published.internode_merge);
  row.why = fmt::format(
      "Two nodes: a token crosses once instead of 4 of its 8 copies. The gain follows from the "
      "share of expert communication, {} of the baseline step. The authors' batch and layout are "
      "not published.",
      percent_text(flat.time().stage.expert_parallel / flat.time().total(), 1));
  rows.push_back(row);

  const auto per_device = [](const MoeSystem& base) {
    return with(base,
                [](MoeSystem& m) { m.shape.mechanisms.token_copies = TokenCopies::PerDevice; });
  };
  row = throughput_row(
      "zero-redundancy communication", kDeepSeekConditions, flat, per_device(flat), std::nullopt);
  const MoeSystem merged = by_path(systems.deepseek, ExpertPath::Gathered);
  row.why = fmt::format(
      "8 of 256 experts are on {:.2f} of 16 devices. With copies merged between nodes, only the "
      "exchange inside a node has redundant copies: {}.",
      distinct_devices(16, 256, 8),
      effect_text(per_device(merged).tokens_per_second() / merged.tokens_per_second() - 1));
  rows.push_back(row);

  const auto loss = [&](BalanceLoss over) {
    return with(pangu, [&](MoeSystem& m) { m.shape.mechanisms.balance_loss = over; });
  };
  row = throughput_row("load-balance loss over the expert group",
                       kPanguConditions,
                       loss(BalanceLoss::Everywhere),
                       loss(BalanceLoss::ExpertGroup),
                       std::nullopt);
  row.why = "1 KiB of loads per layer is all-reduced over 32 devices instead of 384.";
  rows.push_back(row);
  rows.push_back(balanced_exchange_row(systems));
}

void add_schedule_rows(const AblationSystems& systems, AblationRows& rows) {
  const MoeSystem& pangu = systems.pangu;
  const MoeSystem adaptive = scheduled(pangu, PipelineSchedule::AdaptivePipe);
  rows.push_back(hidden_row(systems));
  AblationRow row = throughput_row(
      "Adaptive Pipe against interleaved 1F1B", kPanguConditions, pangu, adaptive, std::nullopt);
  row.why = "Expert communication runs beside compute; the bubble is the interleaved one.";
  rows.push_back(row);
  rows.push_back(weights_row(systems));
  row = throughput_row("Adaptive Pipe against DualPipe: time",
                       kPanguConditions,
                       scheduled(pangu, PipelineSchedule::DualPipe),
                       adaptive,
                       std::nullopt);
  row.why =
      "Both hide the same communication. DualPipe's bubble has 7 slots of whole stages, Adaptive "
      "Pipe's 15 of half stages.";
  rows.push_back(row);
}

}  // namespace temper::sim_hw
