#include "cli/serve/losses.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::cli {
namespace {

using actors::CardState;
using actors::RoleKind;
using orchestrator::Summary;
using orchestrator::WaitSummary;

constexpr double kLeast = 0.001;

struct Advice {
  std::string_view what, command;
};

std::string whatif(const std::string& run, std::string_view change) {
  return fmt::format("temper whatif {} --set {}", run, change);
}

/// What a wait of a role in a state is changed by. Commands are for the recorded run.
std::pair<std::string, std::string> advice_on(const WaitSummary& w,
                                              const Summary& s,
                                              const std::string& run) {
  const std::uint64_t more = s.staleness.bound + 1;
  switch (w.state) {
    case CardState::WaitQuota:
      return {fmt::format("The staleness rule admits no group. A bound of {} lets engines begin "
                          "sooner; more cards for the trainer shorten the wait at the same bound.",
                          more),
              whatif(run, fmt::format("staleness.bound={}", more))};
    case CardState::WaitData:
      if (w.role == RoleKind::Trainer) {
        return {
            "The trainer waits for groups. Give the rollout more cards or slots, or let the "
            "trainer lend its cards while it waits (placement.mode=hybrid).",
            s.simulated ? fmt::format("temper tune {}/config.yaml", run)
                        : whatif(run, fmt::format("staleness.bound={}", more))};
      }
      if (w.role == RoleKind::Rollout) {
        return {
            "Engines have free slots and no group to fill them. More groups in flight "
            "(rollout.concurrency, staleness.bound) or fewer rollout cards.",
            whatif(run, fmt::format("staleness.bound={}", more))};
      }
      return {"This role is faster than what feeds it: it could share cards with the rollout.",
              s.simulated ? fmt::format("temper tune {}/config.yaml", run) : std::string()};
    case CardState::WaitWeights:
      return {
          "Engines wait for new weights. Let them go on under the old ones "
          "(rollout.on_new_weights=keep_kv), or publish over a faster link.",
          std::string()};
    case CardState::Idle:
      return {"Nothing was left to do: the tail of the run, or a role that is rarely needed.",
              s.simulated ? fmt::format("temper tune {}/config.yaml", run) : std::string()};
    case CardState::Down:
      return {w.on == "start" ? "Actors were starting: a longer run hides it."
                              : "Actors were lost and started again: see the restarts, and logs/.",
              std::string()};
    default:
      return {};
  }
}

}  // namespace

std::vector<Loss> rank_losses(const Summary& s, const std::string& run) {
  std::vector<Loss> losses;
  const auto add = [&](Loss loss) {
    if (loss.share < kLeast)
      return;
    loss.most_gain = loss.share < 1 ? 1 / (1 - loss.share) - 1 : 0;
    losses.push_back(std::move(loss));
  };
  for (const WaitSummary& w : s.waits) {
    auto [advice, command] = advice_on(w, s, run);
    add({fmt::format(
             "{}: {}{}", name_of(w.role), name_of(w.state), w.on.empty() ? "" : ", " + w.on),
         w.state,
         w.s,
         w.share,
         0,
         w.longest_s,
         w.longest_at_s,
         w.longest_on,
         std::move(advice),
         std::move(command)});
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
    add({std::string(name_of(state)),
         state,
         it->second * all,
         it->second,
         0,
         0,
         0,
         {},
         std::string(advice),
         s.simulated ? fmt::format("temper tune {}/config.yaml", run) : std::string()});
  }
  std::ranges::stable_sort(losses, std::greater{}, &Loss::card_s);
  return losses;
}

}  // namespace temper::cli
