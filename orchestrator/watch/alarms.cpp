#include "orchestrator/watch/alarms.hpp"

#include "core/statistics.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {
namespace {

/// Older leases are dropped, because those of lost actors are never answered.
constexpr Duration kOldest = std::chrono::hours(6);

double reward_of(const MetricsLine& l) {
  return l.update.metrics.reward_mean;
}
double entropy_of(const MetricsLine& l) {
  return l.update.metrics.entropy;
}
double kl_of(const MetricsLine& l) {
  return l.update.metrics.kl;
}
double effective_of(const MetricsLine& l) {
  return l.update.metrics.effective_samples;
}
double wait_of(const MetricsLine& l) {
  double sum = 0;
  for (const auto state : {actors::CardState::WaitData,
                           actors::CardState::WaitWeights,
                           actors::CardState::WaitQuota}) {
    if (const auto it = l.states.find(state); it != l.states.end())
      sum += it->second;
  }
  return sum;
}

/// Name of the first metric that is not finite; empty if all are finite.
std::string not_finite(const MetricsLine& l) {
  const actors::UpdateMetrics& m = l.update.metrics;
  const std::pair<const char*, double> all[] = {{"loss", m.loss},
                                                {"reward", m.reward_mean},
                                                {"kl", m.kl},
                                                {"entropy", m.entropy},
                                                {"gradient_norm", m.gradient_norm},
                                                {"ratio_mean", m.ratio_mean}};
  for (const auto& [name, value] : all) {
    if (!std::isfinite(value))
      return name;
  }
  return {};
}

}  // namespace

void Alarms::judge(AlarmKind kind, bool holds, const std::string& key, std::string text) {
  if (!holds) {
    standing_.erase({kind, key});
    return;
  }
  if (standing_.insert({kind, key}).second)
    raised_.push_back({kind, time_, step_, std::move(text)});
}

std::vector<Alarm> Alarms::take() {
  return std::exchange(raised_, {});
}

double Alarms::recent(Figure figure) const {
  double sum = 0;
  for (std::size_t i = lines_.size() - kRecent; i < lines_.size(); ++i)
    sum += figure(lines_[i]);
  return sum / kRecent;
}

double Alarms::before(Figure figure) const {
  double sum = 0;
  for (std::size_t i = 0; i < kBefore; ++i)
    sum += figure(lines_[i]);
  return sum / kBefore;
}

std::vector<Alarm> Alarms::on_update(const MetricsLine& line) {
  if (!config_.enabled)
    return {};
  if (line.update.version.value() <= step_) {  // The run rolled back.
    lines_.clear();
    best_.reset();
    lowest_.reset();
  }
  step_ = line.update.version.value();
  time_ = line.update.time;
  updated_ = true;
  lines_.push_back(line);
  if (lines_.size() > kRecent + kBefore)
    lines_.pop_front();
  const std::string bad = not_finite(line);
  judge(AlarmKind::NotFinite,
        !bad.empty(),
        "",
        fmt::format("{} of step {} is not a finite number", bad, step_));
  if (lines_.size() >= kRecent)
    check_learning();
  check_engines(line.update.time);
  return take();
}

void Alarms::check_learning() {
  const double reward = recent(reward_of);
  best_ = std::max(best_.value_or(reward), reward);
  lowest_ = std::min(lowest_.value_or(reward), reward);
  judge(AlarmKind::RewardCollapse,
        *best_ - *lowest_ > kClear && reward < *lowest_ + (*best_ - *lowest_) / 2 &&
            reward < *best_ - kClear && enough() && reward < before(reward_of) - kClear,
        "",
        fmt::format("mean reward of the last {} steps is {:.3f}; the best was {:.3f}",
                    kRecent,
                    reward,
                    *best_));
  check_ratios();
  if (!enough())
    return;
  const double entropy = recent(entropy_of), entropy_before = before(entropy_of);
  judge(AlarmKind::EntropyCollapse,
        entropy_before > 0.01 && entropy < entropy_before / 5 && reward <= before(reward_of),
        "",
        fmt::format("entropy fell from {:.4f} to {:.4f} while the reward did not grow",
                    entropy_before,
                    entropy));
  const double kl = recent(kl_of), kl_before = before(kl_of);
  judge(AlarmKind::KlBlowUp,
        kl > 0.1 && kl > 10 * std::abs(kl_before),
        "",
        fmt::format("kl rose from {:.4f} to {:.4f}", kl_before, kl));
  const double wait = recent(wait_of), wait_before = before(wait_of);
  const Duration recently = lines_.back().update.time - lines_[kBefore].update.time;
  judge(AlarmKind::GrowingWait,
        recently >= kLeastRecent && wait > wait_before + 0.3,
        "",
        fmt::format(
            "cards wait {:.0f} % of the time, up from {:.0f} %", wait * 100, wait_before * 100));
}

/// Judges the importance ratios: how many tokens they leave effective, and whether they are 1 for
/// fresh tokens.
void Alarms::check_ratios() {
  const double effective = recent(effective_of);
  const bool standing = standing_.contains({AlarmKind::FewEffectiveSamples, ""});
  judge(AlarmKind::FewEffectiveSamples,
        effective > 0 &&  // 0: the trainer does not report it.
            effective < (standing ? kRecovered : kEffective),
        "",
        fmt::format("the importance ratios leave {:.0f} % of the tokens effective; lower "
                    "algorithm.learning_rate or staleness.bound, or set "
                    "algorithm.scale_by_effective_samples",
                    effective * 100));
  double fresh = 0, mismatch = 0;  // In tokens per token of a step.
  for (std::size_t i = lines_.size() - kRecent; i < lines_.size(); ++i) {
    const actors::UpdateMetrics& m = lines_[i].update.metrics;
    fresh += 1 - m.stale_tokens;
    mismatch += (1 - m.stale_tokens) * m.mismatch;
  }
  judge(AlarmKind::EngineMismatch,
        fresh > 0 && mismatch / fresh > kMismatch,
        "",
        fmt::format("engine and trainer disagree by {:.3f} nats a token about samples of the same "
                    "weights; compare precision, temperature and chat template of the two, and "
                    "whether the engine loads all weights",
                    fresh > 0 ? mismatch / fresh : 0));
}

void Alarms::take_actors(const std::vector<ActorSpec>& actors) {
  engines_.resize(actors.size());
  for (std::size_t a = 0; a < actors.size(); ++a) {
    engines_[a].name = actors[a].name;
    engines_[a].generates = actors[a].role == actors::RoleKind::Rollout;
  }
}

std::vector<Alarm> Alarms::feed(const Record& record) {
  if (const auto* actors = actors_in(record.event))
    take_actors(*actors);
  if (const auto* down = std::get_if<event::ActorDown>(&record.event)) {
    time_ = record.time;
    const std::size_t actor = down->actor.value();
    if (config_.enabled && actor < engines_.size() && down->not_finite) {
      judge(AlarmKind::NotFinite,
            true,
            "",
            fmt::format("{} was lost: {}", engines_[actor].name, down->reason));
    }
  } else if (const auto* said = std::get_if<event::Generated>(&record.event)) {
    for (const auto& item : said->items) {
      const auto lease = leases_.find(item.lease);
      if (lease == leases_.end() || said->actor.value() >= engines_.size())
        continue;
      Engine& engine = engines_[said->actor.value()];
      engine.tokens += static_cast<double>(item.tokens.count());
      engine.seconds += seconds(record.time - lease->second.since);
      if (--lease->second.owed == 0)
        leases_.erase(lease);
    }
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    leases_.clear();
  }
  for (const Command& command : record.commands) {
    if (const auto* dispatch = std::get_if<command::Dispatch>(&command))
      leases_[dispatch->lease] = {record.time, dispatch->responses.size()};
  }
  return take();
}

void Alarms::check_engines(Time now) {
  if (now < engines_until_ + kEngineWindow)
    return;
  engines_until_ = now;
  std::erase_if(leases_, [&](const auto& l) { return l.second.since + kOldest < now; });
  std::vector<double> speeds;
  std::vector<const Engine*> measured;
  for (Engine& engine : engines_) {
    if (!engine.generates)
      continue;
    if (engine.seconds > 0 && engine.tokens > 0) {  // An idle engine has no speed.
      speeds.push_back(engine.tokens / engine.seconds);
      measured.push_back(&engine);
    }
  }
  if (speeds.size() >= 3) {
    const double usual = median(speeds);
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      judge(AlarmKind::SlowEngine,
            speeds[i] < usual / 2,
            measured[i]->name,
            fmt::format("responses of {} get {:.1f} tokens/s; those of the median engine {:.1f}",
                        measured[i]->name,
                        speeds[i],
                        usual));
    }
  }
  for (Engine& engine : engines_)
    engine.tokens = engine.seconds = 0;
}

std::vector<Alarm> Alarms::on_health(const Health& h) {
  if (!config_.enabled)
    return {};
  time_ = h.time;
  if (!began_)
    began_ = progress_ = h.wall;
  if (std::exchange(updated_, false)) {
    steps_.push_back(seconds(h.wall - *progress_));
    if (steps_.size() > kRecent)
      steps_.pop_front();
    progress_ = h.wall;
  }
  if (!memory_at_first_ && h.wall - *began_ >= kWarmUp)
    memory_at_first_ = h.memory;
  if (memory_at_first_) {
    const std::int64_t first = memory_at_first_->count(), now = h.memory.count();
    judge(AlarmKind::MemoryGrowth,
          now > first + first / 2 && now > first + (std::int64_t{256} << 20),
          "",
          fmt::format("the processes of the run hold {} MiB, up from {} MiB {} after the start",
                      now >> 20,
                      first >> 20,
                      to_text(kWarmUp)));
  }
  judge(
      AlarmKind::DiskAlmostFull,
      h.disk_free < config_.disk_free,
      "",
      fmt::format("only {} MiB are free on the disk of the run folder", h.disk_free.count() >> 20));
  const Duration still = h.wall - *progress_;
  if (!h.over && steps_.size() >= 3) {
    const double usual = median({steps_.begin(), steps_.end()});
    judge(
        AlarmKind::NoProgress,
        still >= kLeastWait && seconds(still) > config_.no_progress * usual,
        "",
        fmt::format("no step for {:.0f} s; the median step takes {:.2f} s", seconds(still), usual));
  }
  return take();
}

}  // namespace temper::orchestrator
