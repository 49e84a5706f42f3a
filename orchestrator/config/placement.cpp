#include "orchestrator/config/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Cards [begin, end).
std::vector<CardId> range(std::int32_t begin, std::int32_t end) {
  std::vector<CardId> cards;
  for (std::int32_t card = begin; card < end; ++card)
    cards.push_back(CardId(static_cast<std::uint32_t>(card)));
  return cards;
}

/// Joins the second list to the first.
std::vector<CardId> joined(std::vector<CardId> cards, const std::vector<CardId>& more) {
  cards.insert(cards.end(), more.begin(), more.end());
  return cards;
}

std::vector<CardId> without(std::vector<CardId> cards, const std::vector<CardId>& taken) {
  std::erase_if(cards, [&](CardId card) {
    return std::find(taken.begin(), taken.end(), card) != taken.end();
  });
  return cards;
}

void add_slots(std::vector<ActorSpec>& slots,
               actors::RoleKind role,
               std::int32_t replicas,
               const std::vector<CardId>& cards,
               std::int32_t concurrency,
               HardwareKind hardware) {
  const auto count = static_cast<std::size_t>(replicas);
  for (std::size_t i = 0; i < count; ++i) {
    slots.push_back({.name = fmt::format("{}-{}", name_of(role), i),
                     .role = role,
                     .cards = hardware == HardwareKind::Simulated ? block_of(cards, i, count)
                                                                  : share_of(cards, i, count),
                     .concurrency = concurrency});
  }
}

}  // namespace

PlacementConfig resolve_placement(const PipelineConfig& config) {
  PlacementConfig out = config.placement;
  const std::vector<CardId> all = range(0, out.cards);
  if (out.mode == PlacementMode::Colocated) {
    for (std::vector<CardId>* list : {&out.rollout, &out.trainer, &out.reference}) {
      if (list->empty())
        *list = all;
    }
    if (out.reward.empty() && config.hardware == HardwareKind::Local)
      out.reward = all;
    return out;
  }
  if (out.rollout.empty() && (out.trainer.empty() || out.rollout_cards > 0)) {
    const std::int32_t wanted = out.rollout_cards > 0 ? out.rollout_cards : (out.cards + 1) / 2;
    const std::vector<CardId> free = without(all, out.trainer);
    out.rollout.assign(free.begin(),
                       free.begin() + std::min<std::ptrdiff_t>(wanted, std::ssize(free)));
  }
  if (out.rollout.empty())
    out.rollout = without(all, out.trainer);
  if (out.reference.empty() && out.reference_cards > 0) {
    const std::vector<CardId> free = without(all, joined(out.rollout, out.trainer));
    out.reference.assign(
        free.begin(),
        free.begin() + std::min<std::ptrdiff_t>(out.reference_cards, std::ssize(free)));
  }
  if (out.trainer.empty()) {
    out.trainer =
        without(all, out.reference_cards > 0 ? joined(out.rollout, out.reference) : out.rollout);
  }
  if (out.reference.empty() && out.reference_cards == 0)
    out.reference = out.reference_on == ReferenceCards::Trainer ? out.trainer : out.rollout;
  if (out.reward.empty() && config.hardware == HardwareKind::Local)
    out.reward = out.rollout;
  return out;
}

std::vector<CardId> share_of(const std::vector<CardId>& cards,
                             std::size_t index,
                             std::size_t replicas) {
  TEMPER_CHECK(index < replicas, "the replica exists");
  if (cards.empty())
    return {};
  if (replicas >= cards.size())
    return {cards[index % cards.size()]};
  std::vector<CardId> share;
  for (std::size_t i = index; i < cards.size(); i += replicas)
    share.push_back(cards[i]);
  return share;
}

std::vector<CardId> block_of(const std::vector<CardId>& cards,
                             std::size_t index,
                             std::size_t replicas) {
  TEMPER_CHECK(index < replicas, "the replica exists");
  const auto at = [&](std::size_t i) {
    return cards.begin() + static_cast<std::ptrdiff_t>(i * cards.size() / replicas);
  };
  return {at(index), at(index + 1)};
}

std::vector<ActorSpec> actor_slots(const PipelineConfig& config) {
  using actors::RoleKind;
  const PlacementConfig placement = resolve_placement(config);
  std::vector<ActorSpec> slots;
  add_slots(slots,
            RoleKind::Rollout,
            config.rollout.replicas,
            placement.rollout,
            config.rollout.concurrency,
            config.hardware);
  add_slots(slots,
            RoleKind::Reference,
            config.reference.replicas,
            placement.reference,
            0,
            config.hardware);
  add_slots(slots, RoleKind::Reward, config.reward.replicas, placement.reward, 0, config.hardware);
  slots.push_back({.name = "trainer", .role = RoleKind::Trainer, .cards = placement.trainer});
  return slots;
}

SchedulerConfig scheduler_config(const PipelineConfig& config) {
  SchedulerConfig out;
  out.actors = actor_slots(config);
  out.steps = config.steps;
  out.groups_per_update = config.algorithm.groups_per_update;
  out.responses_per_group = config.algorithm.responses_per_group;
  out.staleness_bound = static_cast<std::uint64_t>(config.staleness.bound);
  out.colocated = config.placement.mode == PlacementMode::Colocated;
  out.checkpoint_every = static_cast<std::uint64_t>(config.checkpoint.every);
  out.max_restarts = config.transport.max_restarts;
  out.deadlines = config.deadlines;
  return out;
}

}  // namespace temper::orchestrator
