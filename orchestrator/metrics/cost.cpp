#include "orchestrator/metrics/cost.hpp"

#include "orchestrator/metrics/timeline.hpp"

namespace temper::orchestrator {
namespace {

using actors::CardState;

constexpr double kSecondsPerHour = 3600;
constexpr double kWattsPerKilowatt = 1000;

double watts(const CostSection& cost, CardState state) {
  if (state == CardState::Train)
    return cost.train_watts.value_or(cost.busy_watts);
  if (state == CardState::Decode)
    return cost.decode_watts.value_or(cost.busy_watts);
  return is_busy(state) ? cost.busy_watts : cost.idle_watts;
}

}  // namespace

PaidCards paid_cards(std::span<const ActorSpec> actors) {
  std::map<CardId, bool> rollout_only;
  for (const ActorSpec& actor : actors) {
    for (const CardId card : actor.cards)
      rollout_only.try_emplace(card, true).first->second &= actor.role == actors::RoleKind::Rollout;
  }
  PaidCards out{rollout_only.size(), 0};
  for (const auto& [card, only] : rollout_only)
    out.rollout_only += only ? 1 : 0;
  return out;
}

std::optional<CostSummary> cost_of(const CostSection& cost, PaidCards cards, const CardUse& use) {
  const double hours = use.seconds / kSecondsPerHour;
  const auto per = [&](double amount) {
    return amount > 0 ? std::optional(use.trained_tokens / amount) : std::nullopt;
  };
  CostSummary out;
  const double rollout_hour = cost.rollout_card_hour.value_or(cost.card_hour);
  if (cost.card_hour > 0 || rollout_hour > 0) {
    out.price = hours * (static_cast<double>(cards.all - cards.rollout_only) * cost.card_hour +
                         static_cast<double>(cards.rollout_only) * rollout_hour);
    out.tokens_per_price = per(*out.price);
  }
  double mean_watts = 0;
  for (const auto& [state, share] : use.shares)
    mean_watts += share * watts(cost, state);
  if (mean_watts > 0) {
    out.kwh = hours * static_cast<double>(cards.all) * mean_watts / kWattsPerKilowatt;
    out.tokens_per_kwh = per(*out.kwh);
  }
  if (!out.price && !out.kwh)
    return std::nullopt;
  return out;
}

}  // namespace temper::orchestrator
