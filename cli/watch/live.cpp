#include "cli/watch/live.hpp"

#include "core/statistics.hpp"
#include "orchestrator/metrics/metrics_line.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <algorithm>
#include <cmath>

namespace temper::cli {
namespace {

using orchestrator::kCardStates;

double rounded(double value) {
  return temper::rounded(value, 1e4);
}

std::map<actors::CardState, double> named(const std::array<double, kCardStates>& shares) {
  std::map<actors::CardState, double> out;
  for (const auto& [state, name] : EnumNames<actors::CardState>::value) {
    if (const double share = rounded(shares[orchestrator::index_of(state)]); share > 0)
      out[state] = share;
  }
  return out;
}

void add_cards(Live& live, const Frame& frame, const orchestrator::RunMetrics& metrics) {
  const orchestrator::Timeline& timeline = metrics.timeline();
  const double wall = seconds(metrics.wall().time_since_epoch());
  live.cards.resize(timeline.lines().size());
  for (std::size_t card = 0; card < timeline.cards().size(); ++card) {
    LiveCards& line = live.cards[timeline.line_of(card)];
    const std::uint32_t number = timeline.cards()[card].value();
    const std::size_t n = line.cards.size();
    if (n > 0 && line.cards[n - 2] + line.cards[n - 1] == number)
      ++line.cards[n - 1];
    else
      line.cards.insert(line.cards.end(), {number, 1});
    if (n > 0)
      continue;
    line.host = metrics.host_of(timeline.cards()[card]);
    if (card < frame.cards.size())
      line.recent = named(frame.cards[card].shares);
    const orchestrator::StateTimes totals = timeline.totals(card, metrics.wall());
    std::array<double, kCardStates> shares{};
    for (std::size_t s = 0; s < kCardStates && wall > 0; ++s)
      shares[s] = seconds(totals[s]) / wall;
    line.whole = named(shares);
    for (std::uint32_t a = 0; a < metrics.config().actors.size(); ++a) {
      const orchestrator::ActorSpec& spec = metrics.config().actors[a];
      if (!spec.away && std::ranges::count(spec.cards, timeline.cards()[card]) > 0)
        line.actors.push_back(a);
    }
  }
}

}  // namespace

Live make_live(const Frame& frame,
               const orchestrator::RunMetrics& metrics,
               const orchestrator::RunIdentity& identity) {
  Live live;
  live.subtitle = frame.subtitle;
  live.placement = metrics.config().placement();
  live.steps = frame.steps;
  live.updates = metrics.history().count();
  live.elapsed_s = seconds(frame.elapsed);
  if (frame.left)
    live.left_s = seconds(*frame.left);
  live.drawn = frame.drawn;
  for (const double reward : frame.rewards)
    live.rewards.push_back(rounded(reward));
  live.recent = frame.recent;
  live.queue = frame.queue;
  live.slots = frame.slots;
  live.slots_held = frame.slots_held;
  live.slots_mean = rounded(frame.slots_mean);
  for (std::size_t a = 0; a < metrics.config().actors.size(); ++a) {
    const orchestrator::ActorSpec& spec = metrics.config().actors[a];
    live.actors.push_back(
        {spec.name, spec.role, actors::CardState::Idle, "", 0, spec.concurrency, 0, {}});
    if (spec.away) {
      live.actors.back().state = actors::CardState::Down;
      live.actors.back().cause = orchestrator::WaitKind::Removed;
      live.actors.back().on = sentence(orchestrator::WaitCause{live.actors.back().cause});
    }
    if (a >= frame.actors.size())
      continue;
    const ActorFrame& shown = frame.actors[a];
    live.actors.back() = {spec.name,
                          spec.role,
                          shown.state,
                          shown.on,
                          shown.load,
                          shown.capacity,
                          shown.restarts,
                          shown.cause};
  }
  add_cards(live, frame, metrics);
  live.summary = summarize(metrics, identity);
  live.summary.utilization.per_card.clear();
  return live;
}

Frame frame_of(const Live& live) {
  Frame f;
  f.name = live.summary.name;
  f.subtitle = live.subtitle;
  f.step = live.summary.steps;
  f.steps = live.steps;
  f.elapsed = Duration(std::llround(live.elapsed_s * 1e9));
  if (live.left_s)
    f.left = Duration(std::llround(*live.left_s * 1e9));
  f.simulated = live.summary.simulated;
  f.drawn = live.drawn;
  f.rewards = live.rewards;
  if (const auto& e = live.summary.evaluation; e && !e->points.empty()) {
    const orchestrator::EvaluationPoint& last = e->points.back();
    f.held_out =
        held_out_text({last.step, last.pass_1}, {e->best.step, e->best.pass_1}, e->problems);
  }
  f.last_step = step_figures(live.summary.last_step);
  f.recent = live.recent;
  for (const LiveCards& line : live.cards) {
    CardFrame card;
    card.host = line.host;
    for (const auto& [state, share] : line.recent)
      card.shares[orchestrator::index_of(state)] = share;
    for (std::size_t i = 0; i + 1 < line.cards.size(); i += 2) {
      for (std::uint32_t n = 0; n < line.cards[i + 1]; ++n) {
        card.card = CardId(line.cards[i] + n);
        f.cards.push_back(card);
      }
    }
  }
  std::ranges::sort(f.cards, {}, &CardFrame::card);
  f.bound = live.summary.staleness.bound;
  f.staleness_mean = live.summary.staleness.mean;
  f.staleness = live.summary.staleness.histogram;
  for (const LiveActor& a : live.actors) {
    if (!live.over)
      f.actors.push_back({a.name, a.state, a.on, a.load, a.capacity, a.restarts, a.cause});
  }
  f.queue = live.queue;
  f.slots = live.slots;
  f.slots_held = live.slots_held;
  f.slots_mean = live.slots_mean;
  f.restarts = live.summary.restarts.size();
  f.checkpoints = live.summary.checkpoints.saved;
  f.groups_failed = live.summary.groups.failed;
  f.responses_failed = live.summary.groups.responses_failed;
  f.last_failure = live.summary.groups.last_failure;
  f.protocol_violations = live.summary.lies;
  return f;
}

}  // namespace temper::cli
