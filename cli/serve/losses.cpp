#include "cli/serve/losses.hpp"

#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace temper::cli {
namespace {

using actors::CardState;
using actors::RoleKind;
using orchestrator::Summary;
using orchestrator::WaitSummary;

constexpr double kLeast = 0.001;
/// Cards that are occupied for at least this share of their time are the bottleneck.
constexpr double kLimit = 0.8;

/// The cause of a loss, and changes that might reduce it: each is recommended only once its
/// prediction shows a gain.
struct Advice {
  std::string text;
  std::vector<std::string> changes{};  ///< As in a Prediction, most likely first.
};

using Shares = std::map<CardState, double>;
struct CardGroup {
  std::vector<RoleKind> roles;
  double cards = 0;
  Shares shares;  ///< Mean share of each state over the cards.

  double share(CardState s) const {
    const auto it = shares.find(s);
    return it == shares.end() ? 0 : it->second;
  }
  double busy() const {
    double sum = 0;
    for (const auto& [state, share] : shares)
      sum += orchestrator::is_busy(state) ? share : 0;
    return sum;
  }
  double occupied() const {
    return busy() + share(CardState::WeightSync) + share(CardState::Switch);
  }
  double occupied_while_up() const {
    const double up = 1 - share(CardState::Down);
    return up > 0 ? std::min(1.0, occupied() / up) : 0;
  }
  /// The share of the run that these cards need even without any loss in this state.
  double needed_without(CardState state) const {
    const double all = occupied() + share(CardState::Down);
    const bool part =
        state == CardState::WeightSync || state == CardState::Switch || state == CardState::Down;
    return part ? all - share(state) : all;
  }
};

/// The cards of a run, grouped by their roles.
std::vector<CardGroup> card_groups(const Live& live) {
  std::vector<CardGroup> groups;
  for (const LiveCards& line : live.cards) {
    std::vector<RoleKind> roles;
    for (const std::uint32_t actor : line.actors) {
      if (actor < live.actors.size())
        roles.push_back(live.actors[actor].role);
    }
    std::ranges::sort(roles);
    roles.erase(std::unique(roles.begin(), roles.end()), roles.end());
    auto group = std::ranges::find(groups, roles, &CardGroup::roles);
    if (group == groups.end())
      group = groups.insert(groups.end(), {roles, 0, {}});
    double cards = 0;
    for (std::size_t i = 1; i < line.cards.size(); i += 2)
      cards += line.cards[i];
    group->cards += cards;
    for (const auto& [state, share] : line.whole)
      group->shares[state] += share * cards;
  }
  for (CardGroup& group : groups) {
    for (auto& [state, share] : group.shares)
      share = group.cards > 0 ? share / group.cards : 0;
  }
  return groups;
}

/// Relative speedup of a run whose time shrinks to the share `left`.
double gain_of(double left) {
  return left > 0 ? 1 / left - 1 : std::numeric_limits<double>::infinity();
}

/// Upper limit of the relative speedup if the cards lost no time in this state. 0 if no card does
/// any work, since nothing limits such a run.
double most_gain(const std::vector<CardGroup>& groups, CardState state) {
  double needed = 0;
  for (const CardGroup& group : groups)
    needed = std::max(needed, group.needed_without(state));
  return std::max(0.0, gain_of(needed));
}

std::string names_of(const std::vector<RoleKind>& roles) {
  std::string text;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    text += i == 0 ? "" : i + 1 == roles.size() ? " and " : ", ";
    text += name_of(roles[i]);
  }
  return text;
}

/// The change "tuned" for simulated runs, which `temper tune` can search; for others, these.
std::vector<std::string> tuned_or(const Summary& s, std::vector<std::string> others = {}) {
  if (s.simulated)
    return {std::string(orchestrator::kTunedChange)};
  return others;
}

std::string bound_of(std::uint64_t bound) {
  return fmt::format("staleness.bound={}", bound);
}

/// Whether the run already has this setting, e.g. "placement.mode=hybrid".
bool has(const RunFacts& run, std::string_view setting) {
  const std::size_t at = setting.find('=');
  if (at == std::string_view::npos)
    return false;
  const auto it = run.settings.find(std::string(setting.substr(0, at)));
  return it != run.settings.end() && it->second == setting.substr(at + 1);
}

std::optional<BusiestCards> busiest_of(const std::vector<CardGroup>& groups, const Summary& s) {
  const auto it = std::ranges::max_element(groups, {}, &CardGroup::occupied_while_up);
  if (it == groups.end() || it->roles.empty() || it->occupied() <= 0)
    return std::nullopt;
  BusiestCards b;
  b.roles = it->roles;
  b.cards = static_cast<std::uint64_t>(it->cards);
  b.busy = it->busy();
  b.occupied = it->occupied_while_up();
  b.limits = b.occupied >= kLimit;
  b.most_gain = std::max(0.0, gain_of(it->needed_without(CardState::Idle)));
  const std::string roles = names_of(b.roles);
  const std::string cards =
      b.cards == 1 ? std::string("its card was") : fmt::format("its {} cards were", b.cards);
  const std::string occupied =
      fmt::format("{} occupied {:.0f} % of the time", cards, b.occupied * 100);
  if (!b.limits) {
    b.headline = fmt::format(
        "No role is the bottleneck. The busiest one, {}, has spare capacity: {}.", roles, occupied);
    return b;
  }
  b.headline = fmt::format("The bottleneck is {}: {}.", roles, occupied);
  b.advice = groups.size() > 1
                 ? fmt::format(
                       "To speed up the run, give {} more cards or less work. All other changes "
                       "together gain at most {:.1f} %.",
                       roles,
                       b.most_gain * 100)
                 : fmt::format(
                       "All cards share all roles: only more cards or less work speed up the run "
                       "much. All waits together cost at most {:.1f} %.",
                       b.most_gain * 100);
  constexpr double kFewSlots = 0.5;
  if (std::ranges::count(b.roles, RoleKind::Rollout) > 0 && s.slots.slots > 0 &&
      s.slots.while_serving < kFewSlots) {
    b.advice += fmt::format(
        " Engines filled only {:.0f} % of their slots: more groups in flight keep the same cards "
        "busier.",
        s.slots.while_serving * 100);
  }
  const double tail =
      s.wall_s > 0 ? s.tail.decode_s / (s.wall_s * static_cast<double>(s.cards)) : 0;
  if (tail >= kLeast) {
    b.advice += fmt::format(
        " Engines spent {:.1f} % of the card time on the last responses of batches: a larger batch "
        "or staleness bound gives cards other work meanwhile.",
        tail * 100);
  }
  if (s.simulated)
    b.command = orchestrator::kTunedChange;
  return b;
}

Advice advice_on_quota(const WaitSummary& w, const Summary& s, std::uint64_t more) {
  if (w.cause == orchestrator::WaitKind::TrainerDemand) {
    return {
        "The scheduler holds groups back until the trainer needs them (staleness.admission: "
        "just_in_time). The trainer is the limit and a larger bound changes nothing; give it more "
        "cards, for example from the rollout.",
        tuned_or(s)};
  }
  return {
      "The staleness bound throttles the engines. With more cards for the trainer the same bound "
      "throttles less.",
      {bound_of(more)}};
}

Advice advice_on(const WaitSummary& w,
                 const Summary& s,
                 const std::optional<BusiestCards>& busiest) {
  const std::uint64_t more = s.staleness.bound + 1;
  const bool behind = busiest && busiest->limits && std::ranges::count(busiest->roles, w.role) == 0;
  const bool waits = w.state == CardState::WaitData || w.state == CardState::WaitQuota ||
                     w.state == CardState::WaitWeights || w.state == CardState::Idle;
  if (behind && waits) {
    return {fmt::format(
                "These cards wait for the bottleneck, {}. Only a faster bottleneck shortens it.",
                names_of(busiest->roles)),
            tuned_or(s)};
  }
  if (w.tail) {
    return {
        "Only the last responses of a batch were left. A larger batch or staleness bound gives the "
        "cards other work meanwhile.",
        {bound_of(more)}};
  }
  switch (w.state) {
    case CardState::WaitQuota:
      return advice_on_quota(w, s, more);
    case CardState::WaitData:
      if (w.role == RoleKind::Trainer) {
        return {
            "The trainer waits for groups. More cards or slots for the rollout shorten the wait.",
            tuned_or(s, {bound_of(more), "placement.mode=hybrid"})};
      }
      if (w.role == RoleKind::Rollout) {
        return {
            "Engines have free slots but no group to generate: there are too few groups in flight "
            "for the cards of the rollout.",
            {bound_of(more)}};
      }
      return {
          "These cards had no work. If they are exclusive to the role, give it fewer cards, or let "
          "it share the rollout's.",
          tuned_or(s)};
    case CardState::WaitWeights:
      return {
          "Idle engines waited for new weights. A faster link, or fewer and larger steps, shorten "
          "the wait.",
          tuned_or(s)};
    case CardState::Idle:
      return {"No work: the end of the run, or a role that is rarely needed.", tuned_or(s)};
    case CardState::Down:
      return {
          w.cause == orchestrator::WaitKind::Start
              ? "Actors were starting. The share shrinks in a longer run."
              : "Actors were lost and restarted: see the restarts, and logs/ in the run folder.",
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

std::string name_of_change(const std::string& change) {
  return change == orchestrator::kTunedChange ? "the best configuration that `temper tune` found"
                                              : change;
}

const orchestrator::Prediction* prediction_of(const std::string& change, const RunFacts& run) {
  const auto it = std::ranges::find(run.predictions, change, &orchestrator::Prediction::change);
  return it == run.predictions.end() ? nullptr : &*it;
}

/// Whether the predicted gain is larger than its error.
bool gains(const orchestrator::Prediction& p) {
  return p.gain > std::max(p.error, kLeast);
}

/// Adds the cause and one change that the run does not have: the first with a predicted gain, else
/// the first without a prediction, else the first. Only a predicted gain is recommended.
void advise(Loss& loss, const Advice& advice, const RunFacts& run) {
  loss.advice = advice.text;
  std::vector<std::string> changes = advice.changes;
  std::erase_if(changes, [&](const std::string& change) { return has(run, change); });
  if (changes.empty())
    return;
  const auto rank = [&](const std::string& change) {
    const auto* predicted = prediction_of(change, run);
    return predicted == nullptr ? 1 : gains(*predicted) ? 0 : 2;
  };
  const std::string change = *std::ranges::min_element(changes, {}, rank);
  loss.command = command_for(change, run.folder);
  const auto* predicted = prediction_of(change, run);
  if (predicted == nullptr)
    return;
  loss.predicted = predicted->gain;
  loss.predicted_error = predicted->error;
  if (gains(*predicted))
    loss.advice += fmt::format(" Use {}.", name_of_change(change));
}

}  // namespace

Losses rank_losses(const Live& live, const RunFacts& run) {
  const Summary& s = live.summary;
  const std::vector<CardGroup> groups = card_groups(live);
  Losses out;
  out.busiest = busiest_of(groups, s);
  if (out.busiest)
    out.busiest->command = command_for(out.busiest->command, run.folder);
  const auto add = [&](Loss loss, const Advice& advice) {
    if (loss.share < kLeast)
      return;
    loss.most_gain = loss.share < 1 ? 1 / (1 - loss.share) - 1 : 0;
    loss.most_gain = std::min(loss.most_gain, most_gain(groups, loss.state));
    advise(loss, advice, run);
    out.losses.push_back(std::move(loss));
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
    add(std::move(loss), advice_on(w, s, out.busiest));
  }
  // What actors report of their cards. The scheduler knows no cause.
  const double all = s.wall_s * static_cast<double>(s.cards);
  const std::tuple<CardState, std::string, std::vector<std::string>> overheads[] = {
      {CardState::WeightSync,
       "Weights are exported, loaded and checkpointed. Fewer, larger steps or rarer checkpoints "
       "(checkpoint.every) reduce the time.",
       tuned_or(s)},
      {CardState::Switch,
       "Cards change their role. Larger batches, or exclusive cards for each role, make that "
       "rarer.",
       tuned_or(s, {"placement.mode=separate"})},
      {CardState::WaitTools,
       "All responses of an engine wait for their tools. More responses in flight give it other "
       "work meanwhile.",
       tuned_or(s, {bound_of(s.staleness.bound + 1)})}};
  for (const auto& [state, text, changes] : overheads) {
    const auto it = s.utilization.states.find(state);
    if (it == s.utilization.states.end())
      continue;
    Loss loss;
    loss.what = name_of(state);
    loss.state = state;
    loss.card_s = it->second * all;
    loss.share = it->second;
    add(std::move(loss), {text, changes});
  }
  std::ranges::stable_sort(out.losses, std::greater{}, &Loss::card_s);
  return out;
}

}  // namespace temper::cli
