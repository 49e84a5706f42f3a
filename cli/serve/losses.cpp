#include "cli/serve/losses.hpp"

#include "orchestrator/scheduler/commands.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::cli {
namespace {

using actors::CardState;
using actors::RoleKind;
using orchestrator::Summary;
using orchestrator::WaitSummary;

constexpr double kLeast = 0.001;

/// What would change a loss, and the setting whose effect can be asked for; empty: none can.
struct Advice {
  std::string text, change;
};

std::string bound_of(std::uint64_t bound) {
  return fmt::format("staleness.bound={}", bound);
}

/// A search knows the cost of everything on simulated cards only.
std::string tuned(const Summary& s) {
  return s.simulated ? std::string(orchestrator::kTunedChange) : std::string();
}

Advice advice_on(const WaitSummary& w, const Summary& s) {
  const std::uint64_t more = s.staleness.bound + 1;
  switch (w.state) {
    case CardState::WaitQuota:
      if (w.on == orchestrator::command::kTrainerIsFed) {
        return {
            "Groups are held back until the trainer needs them (staleness.admission: "
            "just_in_time): the trainer is the limit, and a larger bound changes nothing. Give it "
            "more cards, those of the rollout for instance.",
            tuned(s)};
      }
      return {fmt::format("The staleness rule admits no group. A bound of {} lets engines begin "
                          "sooner; more cards for the trainer shorten the wait at the same bound.",
                          more),
              bound_of(more)};
    case CardState::WaitData:
      if (w.role == RoleKind::Trainer) {
        return {
            "The trainer waits for groups. Give the rollout more cards or slots, or let the "
            "trainer lend its cards while it waits (placement.mode=hybrid).",
            s.simulated ? tuned(s) : bound_of(more)};
      }
      if (w.role == RoleKind::Rollout) {
        return {
            "Engines have free slots and no group to fill them. More groups in flight "
            "(rollout.concurrency, staleness.bound) or fewer rollout cards.",
            bound_of(more)};
      }
      return {
          "These cards were done with what there was. If the role has them to itself, fewer of "
          "them, or those of the rollout, would lose less.",
          tuned(s)};
    case CardState::WaitWeights:
      return {
          "Engines wait for new weights. Let them go on under the old ones "
          "(rollout.on_new_weights=keep_kv), or publish over a faster link.",
          s.simulated ? "rollout.on_new_weights=keep_kv" : ""};
    case CardState::Idle:
      return {"Nothing was left to do: the tail of the run, or a role that is rarely needed.",
              tuned(s)};
    case CardState::Down:
      return {w.on == "start" ? "Actors were starting: a longer run hides it."
                              : "Actors were lost and started again: see the restarts, and logs/.",
              {}};
    default:
      return {};
  }
}

std::string command_for(const std::string& change, const std::string& run) {
  if (change.empty())
    return {};
  if (change == orchestrator::kTunedChange)
    return fmt::format("temper tune {}/config.yaml --keep", run);
  return fmt::format("temper whatif {} --set {} --keep", run, change);
}

/// The advice, the command that asks for its effect, and the answer if it was asked already.
void advise(Loss& loss,
            const Advice& advice,
            const std::string& run,
            const std::vector<orchestrator::Prediction>& predictions) {
  loss.advice = advice.text;
  loss.command = command_for(advice.change, run);
  const auto known =
      std::ranges::find(predictions, advice.change, &orchestrator::Prediction::change);
  if (known == predictions.end() || advice.change.empty())
    return;
  loss.predicted = known->gain;
  loss.predicted_error = known->error;
}

}  // namespace

std::vector<Loss> rank_losses(const Summary& s,
                              const std::string& run,
                              const std::vector<orchestrator::Prediction>& predictions) {
  std::vector<Loss> losses;
  const auto add = [&](Loss loss, const Advice& advice) {
    if (loss.share < kLeast)
      return;
    loss.most_gain = loss.share < 1 ? 1 / (1 - loss.share) - 1 : 0;
    advise(loss, advice, run, predictions);
    losses.push_back(std::move(loss));
  };
  for (const WaitSummary& w : s.waits) {
    Loss loss;
    loss.what =
        fmt::format("{}: {}{}", name_of(w.role), name_of(w.state), w.on.empty() ? "" : ", " + w.on);
    loss.state = w.state;
    loss.card_s = w.s;
    loss.share = w.share;
    loss.longest_s = w.longest_s;
    loss.longest_at_s = w.longest_at_s;
    loss.longest_on = w.longest_on;
    add(std::move(loss), advice_on(w, s));
  }
  // What cards do besides their work, by state: these are no waits, so they have no reason.
  const double all = s.wall_s * static_cast<double>(s.cards);
  const std::pair<CardState, std::string_view> overheads[] = {
      {CardState::WeightSync,
       "Weights are exported, loaded and checkpointed. Fewer, larger updates or rarer checkpoints "
       "(checkpoint.every) spend less on it."},
      {CardState::Switch,
       "Cards change their role. Larger batches mean fewer switches; separate cards mean none."}};
  for (const auto& [state, advice] : overheads) {
    const auto it = s.utilization.states.find(state);
    if (it == s.utilization.states.end())
      continue;
    Loss loss;
    loss.what = name_of(state);
    loss.state = state;
    loss.card_s = it->second * all;
    loss.share = it->second;
    add(std::move(loss), {std::string(advice), tuned(s)});
  }
  std::ranges::stable_sort(losses, std::greater{}, &Loss::card_s);
  return losses;
}

}  // namespace temper::cli
