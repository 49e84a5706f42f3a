#include "orchestrator/metrics/summary.hpp"

#include "core/statistics.hpp"
#include "orchestrator/metrics/metrics_file.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {
namespace {

using actors::CardState;

/// For printed figures: six decimals suffice and print short.
double to_6_places(double value) {
  return rounded(value, 1e6);
}
double per_second(Tokens tokens, double wall) {
  return wall > 0 ? to_6_places(static_cast<double>(tokens.count()) / wall) : 0;
}
double share(Duration part, Duration whole) {
  return whole > Duration{} ? to_6_places(seconds(part) / seconds(whole)) : 0;
}

double busy_share(const StateTimes& times, Duration whole) {
  Duration busy{};
  for (const auto& [state, name] : EnumNames<CardState>::value) {
    if (is_busy(state))
      busy += times[index_of(state)];
  }
  return share(busy, whole);
}

UtilizationSummary utilization(const RunMetrics& m) {
  const Timeline& timeline = m.timeline();
  const Time wall = m.wall();
  const Duration each = wall.time_since_epoch();
  const Duration all = each * static_cast<std::int64_t>(timeline.cards().size());
  UtilizationSummary u;
  const StateTimes total = timeline.totals(wall);
  u.busy = busy_share(total, all);
  u.wall_ns = each.count();
  u.no_generation_or_training_s = seconds(timeline.without_generation_or_training(wall));
  for (const auto& [state, name] : EnumNames<CardState>::value)
    u.states[state] = share(total[index_of(state)], all);
  for (std::size_t card = 0; card < timeline.cards().size(); ++card) {
    const StateTimes times = timeline.totals(card, wall);
    CardSummary c;
    c.card = timeline.cards()[card];
    c.host = m.host_of(c.card);
    c.busy = busy_share(times, each);
    for (const auto& [state, name] : EnumNames<CardState>::value) {
      c.states_s[state] = seconds(times[index_of(state)]);
      c.states_ns[state] = times[index_of(state)].count();
    }
    u.per_card.push_back(std::move(c));
  }
  return u;
}

RewardSummary reward(const RewardHistory& rewards) {
  const auto shown = [](std::optional<double> mean) {
    return mean ? std::optional(to_6_places(*mean)) : mean;
  };
  return {shown(rewards.first()), shown(rewards.last()), shown(rewards.best())};
}

StalenessSummary staleness(const RunMetrics& m) {
  StalenessSummary s;
  s.bound = m.config().staleness_bound;
  s.max = m.staleness().max();
  s.mean = to_6_places(m.staleness().mean());
  s.histogram = m.staleness().counts();
  s.token_mean = to_6_places(m.token_staleness());
  s.publish_lag_mean_s = seconds(m.publish_lag_mean());
  s.publish_lag_max_s = seconds(m.publish_lag_max());
  return s;
}

std::vector<WaitSummary> waits(const Timeline& timeline, Time wall) {
  const Duration all = wall.time_since_epoch() * static_cast<std::int64_t>(timeline.cards().size());
  std::vector<WaitSummary> out;
  for (const WaitTotal& w : timeline.waits(wall)) {
    out.push_back({w.reason.role,
                   w.reason.state,
                   w.reason.tail ? "the last responses of a batch" : sentence(w.reason.cause),
                   seconds(w.card_time),
                   share(w.card_time, all),
                   seconds(w.longest),
                   seconds(w.longest_at),
                   sentence(w.longest_cause),
                   w.reason.cause.kind,
                   w.reason.tail});
  }
  return out;
}

/// The reason of a loss; for a resume, the settings that it changed.
std::string restart_text(const Restart& r, const std::vector<ActorSpec>& actors) {
  if (r.kind != Restart::Kind::Resume)
    return sentence(r.reason, actors);
  std::string text = "resumed from a checkpoint";
  for (const SettingChange& c : r.changes)
    text += fmt::format(", {}: {} -> {}", c.key, c.from, c.to);
  return text;
}

TailSummary tail(const Timeline& timeline, Time wall) {
  Duration waits{};
  for (const WaitTotal& w : timeline.waits(wall))
    waits += w.reason.tail ? w.card_time : Duration{};
  const Duration decode = timeline.generating_in_tails(wall);
  const Duration all = wall.time_since_epoch() * std::ssize(timeline.cards());
  return {seconds(timeline.tail().total(wall)),
          seconds(waits),
          seconds(decode),
          share(waits + decode, all)};
}

SwitchesSummary switches(const RunMetrics& m) {
  SwitchesSummary out;
  for (const auto& [action, t] : m.switches()) {
    const double total = seconds(t.total);
    out.count += t.count;
    out.s += total;
    out.actions[action] = {t.count,
                           t.refused,
                           total,
                           to_6_places(total / static_cast<double>(t.count)),
                           seconds(t.longest),
                           t.device_freed.count(),
                           t.device_taken.count(),
                           t.host_freed.count(),
                           t.host_taken.count(),
                           t.process_peak.count()};
  }
  out.s = to_6_places(out.s);
  for (const auto& [state, t] : m.turns().states()) {
    out.states[state] = {
        t.count, to_6_places(seconds(t.total) / static_cast<double>(t.count)), seconds(t.longest)};
  }
  return out;
}

std::optional<EvaluationSummary> evaluation(const RunMetrics& m) {
  if (m.evaluations().empty())
    return std::nullopt;
  EvaluationSummary out;
  for (const RunMetrics::EvaluationResult& e : m.evaluations()) {
    const command::Evaluated& r = e.result;
    out.problems = r.problems;
    out.samples = r.samples;
    const Interval interval = wilson_interval(r.pass_1, static_cast<double>(r.problems));
    out.points.push_back({r.version,
                          seconds(e.time),
                          to_6_places(r.seconds),
                          to_6_places(r.pass_1),
                          to_6_places(r.pass_k),
                          to_6_places(r.reward),
                          r.failed,
                          to_6_places(interval.low),
                          to_6_places(interval.high)});
    out.points.back().within_noise =
        !differ(r.pass_1, m.best_evaluation()->pass_1, static_cast<double>(r.problems));
    if (&r == m.best_evaluation())
      out.best = out.points.back();
  }
  const Duration used = m.timeline().totals(m.wall())[index_of(CardState::Evaluate)];
  out.card_s = seconds(used);
  out.share = share(used, m.wall().time_since_epoch() * std::ssize(m.timeline().cards()));
  return out;
}

TokenSummary tokens(const TokenCounts& t, double wall_s, std::uint64_t cards) {
  TokenSummary out;
  out.generated = t.generated.count();
  out.trained = t.trained.count();
  out.effective = t.effective.count();
  out.generated_per_s = per_second(t.generated, wall_s);
  out.trained_per_s = per_second(t.trained, wall_s);
  out.effective_per_s = per_second(t.effective, wall_s);
  out.trained_per_s_per_card =
      per_second(t.trained, wall_s * static_cast<double>(std::max<std::uint64_t>(1, cards)));
  return out;
}

void set_end(const RunMetrics& m, Summary& s) {
  if (!m.finish()) {
    s.ended = false;
    s.reason = "the log ends before the end of the run";
    return;
  }
  const RunEnd end = end_of(*m.finish(), m.config().actors);
  s.ok = end.ok;
  s.stopped = end.stopped;
  s.reason = end.reason;
}

void set_last_step(const RunMetrics& m, Summary& s) {
  const Update& last = m.updates().back();
  s.steps = last.version.value();
  for_each_figure(line_of(last, m), [&](std::string_view name, double value) {
    if (std::isfinite(value))
      s.last_step.emplace(name, value);
  });
}

}  // namespace

Summary summarize(const RunMetrics& m, const RunIdentity& identity) {
  Summary s;
  set_end(m, s);
  s.name = identity.name;
  s.seed = identity.seed;
  s.simulated = identity.simulated;
  s.log_hash = fmt::format("{:016x}", identity.log_hash);
  if (!m.updates().empty())
    set_last_step(m, s);
  s.wall_s = seconds(m.wall());
  s.start_s = seconds(m.starting());
  s.cards = m.timeline().cards().size();

  s.tokens = tokens(m.tokens(), s.wall_s, s.cards);
  s.utilization = utilization(m);
  s.slots = {m.slots().slots(),
             to_6_places(m.slots().over_wall(m.wall())),
             to_6_places(m.slots().while_serving(m.wall()))};
  s.tail = tail(m.timeline(), m.wall());
  s.staleness = staleness(m);
  s.wasted_tokens = m.wasted().count();
  s.groups = {m.groups().trained,
              m.groups().filtered,
              m.groups().failed,
              m.responses_failed(),
              m.groups().evicted,
              m.last_failure(),
              m.responses_lost()};
  s.lies = m.lies();
  s.reward = reward(m.history().rewards());
  s.lengths = {to_6_places(m.lengths().mean()),
               m.lengths().quantile(0.5),
               m.lengths().quantile(0.99),
               m.lengths().max(),
               to_6_places(m.generated_lengths().mean())};
  s.waits = waits(m.timeline(), m.wall());
  for (const Restart& r : m.restarts())
    s.restarts.push_back({r.kind, seconds(r.time), r.actor, restart_text(r, m.config().actors)});
  s.switches = switches(m);
  s.evaluation = evaluation(m);
  s.judges = m.judges();
  s.cost = cost_of(identity.cost,
                   paid_cards(m.config().actors),
                   {s.wall_s, s.utilization.states, static_cast<double>(s.tokens.trained)});
  s.checkpoints = {m.checkpoints().saved, m.checkpoints().failed, m.checkpoints().last};
  if (auto usage =
          summarize_usage(m.usage(), s.cards, m.wall().time_since_epoch(), m.history().count())) {
    s.mfu = std::move(usage->mfu);
    s.memory = std::move(usage->memory);
    s.network = std::move(usage->network);
    s.engines = usage->engines;
  }
  s.tensors = summarize_tensors(m.usage(), m.history().count());
  return s;
}

}  // namespace temper::orchestrator
