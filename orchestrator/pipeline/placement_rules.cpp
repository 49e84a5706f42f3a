#include "orchestrator/pipeline/placement_rules.hpp"

#include "orchestrator/pipeline/teachers.hpp"
#include "trainer/algorithm_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace temper::orchestrator {
namespace {

using actors::PlacementTraits;

std::string joined(const std::vector<CardId>& cards) {
  return fmt::format("[{}]", fmt::join(cards, ", "));
}

bool contains(const std::vector<CardId>& cards, CardId card) {
  return std::find(cards.begin(), cards.end(), card) != cards.end();
}

void check_cards(const std::string& key,
                 const std::vector<CardId>& cards,
                 std::int32_t count,
                 Rules& rules) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const std::vector<std::string> keys{fmt::format("{}[{}]", key, i), key, "placement.cards"};
    rules.require(
        cards[i].value() < static_cast<std::uint32_t>(count),
        keys,
        fmt::format(
            "must be below the number of cards (placement.cards: {}), found {}", count, cards[i]));
    rules.require(
        std::count(cards.begin(), cards.begin() + static_cast<std::ptrdiff_t>(i), cards[i]) == 0,
        keys,
        fmt::format("card {} is listed twice", cards[i]));
  }
}

/// Checks cards given by number: there must be no list beside it, and the mode must not share all
/// cards.
void check_card_counts(const PlacementConfig& given, bool everywhere, Rules& rules) {
  for (const auto& [count, cards, role] :
       {std::tuple(given.rollout_cards, &given.rollout, "rollout"),
        std::tuple(given.reference_cards, &given.reference, "reference")}) {
    const std::string key = fmt::format("placement.{}_cards", role);
    rules.require(
        count == 0 || cards->empty(),
        {key, fmt::format("placement.{}", role)},
        fmt::format("placement.{} already lists the cards; set only one of the two", role));
    rules.require(count == 0 || !everywhere,
                  {key, "placement.mode"},
                  fmt::format("not allowed in `{}` mode, where every role uses every card",
                              name_of(given.mode)));
  }
}

/// In modes where roles share all cards, the role's cards must be the trainer's.
void check_same_cards(const std::string& role,
                      std::vector<CardId> cards,
                      const PlacementConfig& p,
                      const std::vector<std::string>& keys,
                      Rules& rules) {
  std::vector<CardId> trainer = p.trainer;
  std::sort(cards.begin(), cards.end());
  std::sort(trainer.begin(), trainer.end());
  rules.require(cards == trainer,
                keys,
                fmt::format("in `{}` mode {} and trainer must have the same cards, found {} {} and "
                            "trainer {}",
                            name_of(p.mode),
                            role,
                            role,
                            joined(cards),
                            joined(p.trainer)));
}

}  // namespace

void check_placement(const PipelineConfig& c, const PlacementConfig& p, Rules& rules) {
  const PlacementConfig& given = c.placement;
  check_cards("placement.rollout", given.rollout, given.cards, rules);
  check_cards("placement.trainer", given.trainer, given.cards, rules);
  check_cards("placement.reference", given.reference, given.cards, rules);
  check_cards("placement.reward", given.reward, given.cards, rules);

  const PlacementTraits& mode = traits_of(p.mode);
  const bool everywhere = mode.alternates();
  check_card_counts(given, everywhere, rules);

  const std::vector<std::string> keys{!given.trainer.empty()    ? "placement.trainer"
                                      : given.rollout_cards > 0 ? "placement.rollout_cards"
                                                                : "placement.rollout",
                                      "placement.mode",
                                      "placement.cards",
                                      "placement.rollout",
                                      "placement.trainer"};
  if (everywhere) {
    check_same_cards("rollout", p.rollout, p, keys, rules);
  }
  if (mode.shares_reference && c.reference.replicas > 0)
    check_same_cards("reference", p.reference, p, keys, rules);
  if (everywhere)
    return;
  if (p.cards < 2) {
    rules.require(
        false,
        {"placement.cards", "placement.mode"},
        fmt::format(
            "`{}` mode requires at least 2 cards, found 1; add a card, or use `mode: colocated`",
            name_of(p.mode)));
    return;
  }
  rules.require(
      !p.rollout.empty() && !p.trainer.empty(),
      keys,
      fmt::format("leaves no card for the {}", p.rollout.empty() ? "rollout" : "trainer"));
  const std::int64_t counted = std::int64_t{given.rollout_cards} + given.reference_cards;
  rules.require(
      counted <= p.cards,
      {given.rollout_cards > 0 ? "placement.rollout_cards" : "placement.reference_cards",
       "placement.cards",
       "placement.rollout_cards",
       "placement.reference_cards"},
      fmt::format("{} cards are assigned, but only {} exist (placement.cards)", counted, p.cards));
  std::vector<CardId> shared;
  for (const CardId card : p.rollout) {
    if (contains(p.trainer, card) && !contains(shared, card))
      shared.push_back(card);
  }
  rules.require(
      shared.empty(),
      keys,
      fmt::format("in `{}` mode rollout and trainer must not share cards, found {} in both",
                  name_of(p.mode),
                  joined(shared)));
}

void check_overlap(const PipelineConfig& c, Rules& rules) {
  const bool simulated = c.hardware == HardwareKind::Simulated;
  if (c.placement.switching == Switching::OneByOne) {
    const PlacementTraits& mode = traits_of(c.placement.mode);
    rules.require(simulated && mode.alternates(),
                  {"placement.switching", "placement.mode", "hardware"},
                  fmt::format("`one_by_one` requires `hardware: simulated` and mode {}",
                              names_where(actors::kPlacementModes, &PlacementTraits::alternates)));
    const std::int32_t references = reference_count(c);
    rules.require(references <= 1 || !mode.shares_reference,
                  {"placement.switching", "reference.replicas", "reference.teachers"},
                  fmt::format("`one_by_one` in `{}` mode requires at most one reference, found {}",
                              mode.name,
                              references));
  }
}

void check_preparing(const PipelineConfig& c, Rules& rules) {
  if (!c.stragglers.prepare)
    return;
  const StalenessRuleKind rule = c.staleness.rule;
  rules.require(rule == StalenessRuleKind::Exact || rule == StalenessRuleKind::Sync,
                {"stragglers.prepare", "staleness.rule"},
                fmt::format("`{}` does not fix in advance which groups a step trains; use `exact` "
                            "or `sync`",
                            name_of(rule)));
  rules.require(c.algorithm.minibatches == 1,
                {"stragglers.prepare", "algorithm.minibatches"},
                fmt::format("prepared gradients require 1 minibatch per step, because later ones "
                            "depend on the first; found {}",
                            c.algorithm.minibatches));
  const trainer::Algorithm algorithm = trainer::resolve(c.algorithm, c.sampling.max_new_tokens);
  rules.require(!trainer::needs_whole_batch(algorithm),
                {"stragglers.prepare",
                 "algorithm.name",
                 "algorithm.advantage_mean",
                 "algorithm.advantage_std"},
                fmt::format("the advantages of `{}` depend on the whole batch (advantage_mean: {}, "
                            "advantage_std: {}); expected `group` for both",
                            name_of(c.algorithm.name),
                            name_of(algorithm.advantage_mean),
                            name_of(algorithm.advantage_std)));
  const PlacementTraits& mode = traits_of(c.placement.mode);
  const bool local = c.hardware == HardwareKind::Local;
  rules.require(
      mode.trainer_may_stay() || (!local && c.placement.switching == Switching::OneByOne),
      {"stragglers.prepare", "placement.mode"},
      fmt::format("in `{}` mode the trainer has no card during generation; use {}{}",
                  mode.name,
                  names_where(actors::kPlacementModes, &PlacementTraits::trainer_may_stay),
                  local ? "" : ", or `placement.switching: one_by_one`"));
  if (!local)
    return;
  rules.require(
      c.trainer.engine.kind == actors::EngineKind::Native,
      {"stragglers.prepare", "trainer.engine.kind"},
      fmt::format("requires the `native` trainer, found `{}`", name_of(c.trainer.engine.kind)));
}

}  // namespace temper::orchestrator
