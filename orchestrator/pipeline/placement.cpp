#include "orchestrator/pipeline/placement.hpp"

#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/teachers.hpp"

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

/// Appends the second list to the first.
std::vector<CardId> joined(std::vector<CardId> cards, const std::vector<CardId>& more) {
  cards.insert(cards.end(), more.begin(), more.end());
  return cards;
}

std::vector<CardId> without(std::vector<CardId> cards, std::vector<CardId> taken) {
  std::ranges::sort(taken);
  std::erase_if(cards, [&](CardId card) { return std::ranges::binary_search(taken, card); });
  return cards;
}

/// Appends identical replicas of a role, numbered after the existing ones.
struct Replicas {
  actors::RoleKind role;
  std::size_t count = 0;
  std::vector<CardId> cards;
  std::int32_t concurrency = 0;
  bool takes_turns = false;
  LaunchKind launch = LaunchKind::Local;
};

void add_slots(std::vector<ActorSpec>& slots, const Replicas& add, HardwareKind hardware) {
  const auto there = std::ranges::count(slots, add.role, &ActorSpec::role);
  for (std::size_t i = 0; i < add.count; ++i) {
    slots.push_back(
        {.name = fmt::format("{}-{}", name_of(add.role), static_cast<std::size_t>(there) + i),
         .role = add.role,
         .cards = hardware == HardwareKind::Simulated ? block_of(add.cards, i, add.count)
                                                      : share_of(add.cards, i, add.count),
         .concurrency = add.concurrency,
         .takes_turns = add.takes_turns,
         .attached = add.launch == LaunchKind::Attach});
  }
}

void add_references(std::vector<ActorSpec>& slots,
                    const PipelineConfig& config,
                    const PlacementConfig& placement) {
  const auto share = [&](const std::vector<CardId>& cards, std::size_t i, std::size_t of) {
    return config.hardware == HardwareKind::Simulated ? block_of(cards, i, of)
                                                      : share_of(cards, i, of);
  };
  const auto all = static_cast<std::size_t>(reference_count(config));
  std::size_t place = 0;
  for (const Teacher& teacher : teachers_of(config)) {
    const auto replicas = static_cast<std::size_t>(teacher.replicas);
    for (std::size_t i = 0; i < replicas; ++i, ++place) {
      slots.push_back({.name = teacher.name.empty()
                                   ? fmt::format("reference-{}", i)
                                   : fmt::format("reference-{}-{}", teacher.name, i),
                       .role = actors::RoleKind::Reference,
                       .cards = teacher.cards.empty() ? share(placement.reference, place, all)
                                                      : share(teacher.cards, i, replicas),
                       .takes_turns = traits_of(placement.mode).shares_reference,
                       .attached = config.reference.launch == LaunchKind::Attach,
                       .teacher = teacher.number});
    }
  }
}

}  // namespace

PlacementConfig resolve_placement(const PipelineConfig& config) {
  PlacementConfig out = config.placement;
  for (const Teacher& teacher : teachers_of(config))
    out.reference = joined(std::move(out.reference), teacher.cards);
  const std::vector<CardId> all = range(0, out.cards);
  if (traits_of(out.mode).alternates()) {
    for (std::vector<CardId>* list : {&out.rollout, &out.trainer, &out.reference}) {
      if (list->empty())
        *list = all;
    }
    if (out.reward.empty() && config.hardware == HardwareKind::Local)
      out.reward = all;
    return out;
  }
  if (out.rollout.empty() && (out.trainer.empty() || out.rollout_cards > 0)) {
    const std::int32_t half = has_several_clusters(config)
                                  ? config.simulation.clusters.front().cards
                                  : (out.cards + 1) / 2;
    const std::int32_t wanted = out.rollout_cards > 0 ? out.rollout_cards : half;
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
  if (out.reference.empty() && out.reference_cards == 0) {
    const bool on_trainer =
        traits_of(out.mode).shares_reference || out.reference_on == ReferenceCards::Trainer;
    out.reference = on_trainer ? out.trainer : out.rollout;
  }
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

namespace {

/// Number of engines, of the same size as those on exclusive cards, that fit the trainer's cards;
/// 0 if these are not lent.
std::size_t lent_engines(const PipelineConfig& config, const PlacementConfig& placement) {
  if (!traits_of(placement.mode).lends())
    return 0;
  const auto replicas = static_cast<std::size_t>(std::max(1, config.rollout.replicas));
  const std::size_t each = std::max<std::size_t>(1, placement.rollout.size() / replicas);
  return placement.trainer.size() / each;
}

}  // namespace

std::vector<ActorSpec> actor_slots(const PipelineConfig& config, const PlacementConfig& placement) {
  using actors::RoleKind;
  const actors::PlacementTraits& mode = traits_of(placement.mode);
  const auto count = [](std::int32_t replicas) { return static_cast<std::size_t>(replicas); };
  std::vector<ActorSpec> slots;
  const auto add = [&](const Replicas& replicas) { add_slots(slots, replicas, config.hardware); };
  add({.role = RoleKind::Rollout,
       .count = count(config.rollout.replicas),
       .cards = placement.rollout,
       .concurrency = config.rollout.concurrency,
       .takes_turns = mode.alternates(),
       .launch = config.rollout.launch});
  add({.role = RoleKind::Rollout,
       .count = lent_engines(config, placement),
       .cards = placement.trainer,
       .concurrency = config.rollout.concurrency,
       .takes_turns = true});
  add_references(slots, config, placement);
  add({.role = RoleKind::Reward,
       .count = count(config.reward.replicas),
       .cards = placement.reward,
       .launch = config.reward.launch});
  slots.push_back({.name = "trainer",
                   .role = RoleKind::Trainer,
                   .cards = placement.trainer,
                   .attached = config.trainer.launch == LaunchKind::Attach});
  return slots;
}

std::vector<ActorSpec> actors_from_now(std::vector<ActorSpec> before,
                                       const std::vector<ActorSpec>& wanted) {
  for (ActorSpec& actor : before)
    actor.away = true;
  for (const ActorSpec& actor : wanted) {
    const auto known = std::ranges::find(before, actor.name, &ActorSpec::name);
    if (known == before.end())
      before.push_back(actor);
    else
      *known = actor;
  }
  return before;
}

}  // namespace temper::orchestrator
