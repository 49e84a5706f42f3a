// Price and energy of a run, from the section `cost` and the states of its cards.
//
//   price   hours of wall time, times the price of every card for an hour. A card is cheaper
//           (cost.rollout_card_hour) if all actors on it are rollout engines
//   energy  card time in each state, times the power of a card in it: waits and cards without an
//           actor have the idle power
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "core/describe.hpp"
#include "orchestrator/pipeline/cost_section.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"

#include <map>
#include <optional>
#include <span>

namespace temper::orchestrator {

struct PaidCards {
  std::size_t all = 0;
  std::size_t rollout_only = 0;  ///< Of these, cards on which all actors are rollout engines.
};
PaidCards paid_cards(std::span<const ActorSpec> actors);

/// What a span of a run used.
struct CardUse {
  double seconds = 0;                          ///< Wall time.
  std::map<actors::CardState, double> shares;  ///< Of all card time; they add up to 1.
  double trained_tokens = 0;
};

struct CostSummary {
  std::optional<double> price, tokens_per_price;  ///< Empty without a price.
  std::optional<double> kwh, tokens_per_kwh;      ///< Empty without a power.
};
/// Tokens are trained ones, with prompts. nullopt: neither a price nor a power is given.
std::optional<CostSummary> cost_of(const CostSection& cost, PaidCards cards, const CardUse& use);

void describe(auto& v, CostSummary& s) {
  v.field(1, "price", s.price, {.doc = "Of all cards, in the currency of `cost.card_hour`."});
  v.field(2, "tokens_per_price", s.tokens_per_price, {.doc = "Trained tokens per unit of price."});
  v.field(3, "kwh", s.kwh, {.doc = "Energy of all cards."});
  v.field(4, "tokens_per_kwh", s.tokens_per_kwh, {.doc = "Trained tokens per kWh."});
}

}  // namespace temper::orchestrator
