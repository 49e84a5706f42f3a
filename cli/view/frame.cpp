#include "cli/view/frame.hpp"

#include "core/statistics.hpp"
#include "orchestrator/metrics/metric_table.hpp"
#include "orchestrator/metrics/metrics_file.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::cli {
namespace {

using actors::CardState;
using actors::RoleKind;

CardState work_of(RoleKind role) {
  switch (role) {
    case RoleKind::Trainer:
      return CardState::Train;
    case RoleKind::Rollout:
      return CardState::Decode;
    case RoleKind::Reference:
      return CardState::Reference;
    case RoleKind::Reward:
      return CardState::Reward;
  }
  return CardState::Idle;
}

/// Index of the step where the recent window begins: kRecent ago, but at least a few steps.
std::size_t window_begin(const std::vector<orchestrator::Update>& updates) {
  constexpr std::size_t kLeast = 5;
  std::size_t begin = updates.size() - 1;
  while (begin > 0 && (updates.size() - begin <= kLeast ||
                       updates.back().time - updates[begin].time < kRecent)) {
    --begin;
  }
  return begin;
}

/// Start of the recent window: kRecent ago, or a few steps ago if steps take longer.
Time recent_begin(const std::vector<orchestrator::Update>& updates, Time now) {
  Time begin = now - kRecent;
  if (updates.size() > 1)
    begin = std::min(begin, updates[window_begin(updates)].time);
  return std::max(Time{}, begin);
}

ActorFrame actor_frame(const orchestrator::RunState& run, ActorId id) {
  const orchestrator::ActorSpec& spec = run.fleet.spec(id);
  const orchestrator::ActorState& state = run.fleet.state(id);
  ActorFrame a;
  a.name = spec.name;
  a.state = state.waiting.state;
  a.cause = state.waiting.cause.kind;
  a.on = sentence(state.waiting.cause);
  a.load = run.load_of(id).responses;
  a.capacity = spec.concurrency;
  a.restarts = state.restarts;
  if (state.life == orchestrator::Life::Launching) {
    a.state = CardState::Down;
    a.cause = state.restarts > 0 ? orchestrator::WaitKind::Restart : orchestrator::WaitKind::Start;
    a.on = sentence(orchestrator::WaitCause{a.cause});
  } else if (a.load > 0 && a.state >= CardState::WaitData) {
    a.state = work_of(spec.role);
    a.cause = orchestrator::WaitKind::Work;
    a.on.clear();
  }
  return a;
}

std::map<std::string, double> last_metrics(const orchestrator::RunMetrics& metrics) {
  std::map<std::string, double> out;
  if (!metrics.updates().empty()) {
    for_each_figure(line_of(metrics.updates().back(), metrics),
                    [&](std::string_view name, double value) { out.emplace(name, value); });
  }
  return out;
}

}  // namespace

std::vector<StepFigure> step_figures(const std::map<std::string, double>& metrics) {
  std::vector<StepFigure> figures;
  for (const orchestrator::Metric& metric : orchestrator::metric_table()) {
    const auto it = metrics.find(std::string(metric.name));
    if (metric.place.terminal == orchestrator::InTerminal::Yes && it != metrics.end() &&
        std::isfinite(it->second))
      figures.push_back({metric.name, it->second});
  }
  return figures;
}

FrameRates recent_rates(const std::vector<orchestrator::Update>& updates) {
  FrameRates rates;
  if (updates.empty())
    return rates;
  const std::size_t begin = window_begin(updates);
  const orchestrator::Update& last = updates.back();
  orchestrator::Update first;  // the start of the run
  if (begin > 0 || updates.size() > 1)
    first = updates[begin];
  const double interval = seconds(last.time - first.time);
  if (interval <= 0)
    return rates;
  const auto rate = [&](Tokens a, Tokens b) {
    return static_cast<double>((b - a).count()) / interval;
  };
  rates.generated = rate(first.tokens.generated, last.tokens.generated);
  rates.trained = rate(first.tokens.trained, last.tokens.trained);
  rates.effective = rate(first.tokens.effective, last.tokens.effective);
  return rates;
}

std::optional<Duration> time_left(const std::vector<orchestrator::Update>& updates,
                                  std::uint64_t steps,
                                  Time now) {
  if (updates.size() < 2)
    return std::nullopt;
  const orchestrator::Update& last = updates.back();
  const orchestrator::Update& first = updates[window_begin(updates)];
  const std::uint64_t made = last.version.value() - first.version.value();
  if (made == 0 || last.version.value() > steps)
    return std::nullopt;
  const Duration each = (last.time - first.time) / static_cast<std::int64_t>(made);
  const Duration left = each * static_cast<std::int64_t>(steps - last.version.value());
  return std::max(Duration{}, left - (now - last.time));
}

std::string held_out_text(const HeldOut& last, const HeldOut& best, std::uint64_t problems) {
  const auto trials = static_cast<double>(problems);
  const Interval interval = wilson_interval(last.pass_1, trials);
  std::string text = fmt::format(
      "pass@1 {:.3f} [{:.2f}, {:.2f}] v{}", last.pass_1, interval.low, interval.high, last.version);
  if (best.version == last.version)
    return text + ", the best so far";
  return text + fmt::format("; best {:.3f} v{}{}",
                            best.pass_1,
                            best.version,
                            differ(last.pass_1, best.pass_1, trials) ? "" : ", within noise");
}

Frame make_frame(std::string name,
                 const orchestrator::RunMetrics& metrics,
                 const orchestrator::RunTick* tick,
                 Time now) {
  const orchestrator::SchedulerConfig& config = metrics.config();
  const orchestrator::Timeline& timeline = metrics.timeline();
  Frame f;
  f.name = std::move(name);
  f.subtitle = fmt::format("{}, {} cards, staleness bound {}",
                           config.placement(),
                           timeline.cards().size(),
                           config.staleness_bound);
  if (config.placement() != "separate" && tick != nullptr)
    f.subtitle += fmt::format(", {}", name_of(tick->phase));
  f.step = metrics.updates().empty() ? 0 : metrics.updates().back().version.value();
  f.steps = config.steps;
  f.elapsed = now.time_since_epoch();
  f.left = time_left(metrics.updates(), config.steps, now);
  f.rewards = metrics.history().rewards().curve();
  if (!metrics.evaluations().empty()) {
    const orchestrator::command::Evaluated& last = metrics.evaluations().back().result;
    const orchestrator::command::Evaluated& best = *metrics.best_evaluation();
    f.held_out =
        held_out_text({last.version, last.pass_1}, {best.version, best.pass_1}, last.problems);
  }
  f.last_step = step_figures(last_metrics(metrics));
  f.recent = recent_rates(metrics.updates());
  const Time since = recent_begin(metrics.updates(), now);
  std::vector<std::optional<CardFrame>> lines(timeline.lines().size());
  for (std::size_t card = 0; card < timeline.cards().size(); ++card) {
    std::optional<CardFrame>& line = lines[timeline.line_of(card)];
    if (!line) {
      const orchestrator::StateTimes end = timeline.totals(card, now);
      const orchestrator::StateTimes begin = timeline.totals(card, since);
      line.emplace();
      for (std::size_t s = 0; s < orchestrator::kCardStates && now > since; ++s)
        line->shares[s] = seconds(end[s] - begin[s]) / seconds(now - since);
    }
    const CardId id = timeline.cards()[card];
    f.cards.push_back({id, line->shares, metrics.host_of(id)});
  }
  f.slots = metrics.slots().slots();
  f.slots_held = metrics.slots().load();
  f.slots_mean = metrics.slots().while_serving(now);
  f.bound = config.staleness_bound;
  f.staleness_mean = metrics.staleness().mean();
  f.staleness = metrics.staleness().counts();
  for (std::uint32_t a = 0; tick != nullptr && a < tick->run.fleet.size(); ++a)
    f.actors.push_back(actor_frame(tick->run, ActorId(a)));
  f.queue = metrics.queue();
  f.restarts = metrics.restarts().size();
  f.checkpoints = metrics.checkpoints().saved;
  f.groups_failed = metrics.groups().failed;
  f.responses_failed = metrics.responses_failed();
  f.last_failure = metrics.last_failure();
  f.protocol_violations = metrics.lies();
  return f;
}

}  // namespace temper::cli
