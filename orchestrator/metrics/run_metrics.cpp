#include "orchestrator/metrics/run_metrics.hpp"

#include "orchestrator/metrics/without_evaluation.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Engines are at most this many versions behind.
constexpr std::size_t kMostVersions = 256;

bool is_effective(std::span<const double> rewards) {
  return std::any_of(
      rewards.begin(), rewards.end(), [&](double r) { return r != rewards.front(); });
}

}  // namespace

void RunMetrics::feed(const Record& record) {
  now_ = record.time;
  if (!finish_ || std::holds_alternative<event::Resumed>(record.event))
    wall_ = record.time;
  timeline_.feed(record);
  if (const auto* judged = std::get_if<event::Judged>(&record.event); judged && judged->usage)
    judges_ = judges_.value_or(actors::JudgeUsage()) += *judged->usage;
  if (config_->evaluation.every == 0)
    return feed_training(record);
  feed_evaluation(record);
  const auto rest = without_evaluation(record);
  feed_training(rest ? *rest : record);
}

void RunMetrics::feed_training(const Record& record) {
  turns_.feed(record);
  usage_.feed(record);
  if (!finish_ || std::holds_alternative<event::Resumed>(record.event))
    slots_.feed(record);
  std::visit([this](const auto& e) { on_event(e); }, record.event);
  for (const Command& command : record.commands)
    std::visit([this](const auto& c) { on_command(c); }, command);
  // After the commands, because the scheduler's own snapshot contains what they dispatched.
  const auto* saved = std::get_if<event::CheckpointSaved>(&record.event);
  if (std::holds_alternative<event::Started>(record.event) || (saved && saved->error.empty()))
    take_snapshot(record.sequence);
}

const SchedulerConfig& RunMetrics::config() const {
  return *config_;
}

std::string RunMetrics::name_of_actor(ActorId actor) const {
  return actor.value() < config_->actors.size() ? config_->actors[actor.value()].name : "?";
}

std::string RunMetrics::host_of(CardId card) const {
  for (const auto& [actor, host] : hosts_) {
    if (actor < config_->actors.size() && !config_->actors[actor].away &&
        std::ranges::count(config_->actors[actor].cards, card) > 0)
      return host;
  }
  return {};
}

// --- Groups and responses

RunMetrics::Found RunMetrics::find(ResponseId r) {
  const auto it = groups_.find(group_of(r));
  return it == groups_.end() ? Found()
                             : Found(&it->second, &it->second.responses[ids_.place_of(r)]);
}

std::int64_t& RunMetrics::depth(Stage stage) {
  switch (stage) {
    case Stage::Generating:
      return queue_.generating;
    case Stage::Scoring:
      return queue_.scoring;
    case Stage::Ready:
      return queue_.ready;
    case Stage::Training:
      break;
  }
  return queue_.training;
}

void RunMetrics::move_to(Group& group, Stage stage) {
  --depth(group.stage);
  group.stage = stage;
  ++depth(stage);
}

/// Advances a group if all its responses allow it. A group in training stays there.
void RunMetrics::settle_stage(Group& group) {
  if (group.stage == Stage::Training)
    return;
  bool generated = true, scored = true;
  for (const Response& r : group.responses) {
    if (r.failed)
      continue;
    generated = generated && r.generated;
    scored = scored && r.judged && (r.scored || !with_reference_);
  }
  const Stage stage = !generated ? Stage::Generating : scored ? Stage::Ready : Stage::Scoring;
  if (stage != group.stage)
    move_to(group, stage);
}

/// Voids everything that was leased to the actor.
void RunMetrics::void_leases(ActorId actor) {
  std::erase_if(leases_, [&](const auto& l) { return l.second.actor == actor; });
  for (auto& [id, group] : groups_) {
    for (Response& r : group.responses) {
      if (r.engine == actor)
        r.generate = LeaseId{};
    }
  }
  if (training_ && training_->actor == actor)
    cancel_step();
}

void RunMetrics::count_outstanding() {
  queue_ = {};
  outstanding_ = Tokens(0);
  for (const auto& [id, group] : groups_) {
    for (const Response& r : group.responses)
      outstanding_ += r.tokens;
  }
  for (auto& [id, group] : groups_)
    ++depth(group.stage);
}

void RunMetrics::take_snapshot(std::uint64_t sequence) {
  if (snapshots_.size() > kMostWaysBack)
    snapshots_.erase(snapshots_.begin() + 1);
  snapshots_.push_back({sequence, stored_, groups_, updates_.mark()});
}

// --- Events

void RunMetrics::on_event(const event::Started& e) {
  config_ = e.config;
  ids_ = ResponseIds(config_->responses_per_group);
  with_reference_ = config_->has_reference();
}

void RunMetrics::on_event(const event::Scaled& e) {
  config_->actors = e.actors;
}

void RunMetrics::on_event(const event::Resumed& e) {
  if (e.config)
    config_ = *e.config;
  ++resumes_;
  starting_since_ = starting_since_.value_or(now_);
  if (restarts_.empty() || restarts_.back().kind != Restart::Kind::Rollback || e.rollbacks == 0)
    restarts_.push_back({Restart::Kind::Resume, now_, "", std::nullopt, e.changes});
  finish_.reset();
  training_.reset();
  leases_.clear();
  trained_at_.clear();
  while (snapshots_.size() > 1 && snapshots_.back().sequence > e.sequence)
    snapshots_.pop_back();
  if (!snapshots_.empty())
    go_back(snapshots_.back());
  start_over(e.lost);
  before_ = {now_, tokens(), groups(), judges_.value_or(actors::JudgeUsage())};
}

/// Responses whose tensors are gone.
void RunMetrics::start_over(const std::vector<ResponseId>& lost) {
  for (const ResponseId id : lost) {
    const auto [group, r] = find(id);
    if (r == nullptr)
      continue;
    outstanding_ -= r->tokens;
    *r = {};
    settle_stage(*group);
    ++responses_lost_;
  }
}

void RunMetrics::go_back(const Snapshot& back) {
  stored_ = back.stored;
  groups_ = back.groups;
  updates_.go_back(back.updates);
  for (auto& [id, group] : groups_) {
    for (Response& r : group.responses)
      r.generate = r.reference = r.judge = LeaseId{};
    group.stage = Stage::Generating;
  }
  count_outstanding();
  for (auto& [id, group] : groups_)
    settle_stage(group);
}

void RunMetrics::on_event(const event::Generated& e) {
  for (const auto& item : e.items) {
    generated_ += item.tokens;
    const auto [group, r] = find(item.response);
    if (r == nullptr || r->generate != item.lease || item.lease == LeaseId{})
      continue;
    r->generate = LeaseId{};
    r->prompt = item.prompt;
    r->tokens += item.tokens;
    outstanding_ += item.tokens;
    for (const actors::Segment& s : item.segments) {
      r->token_versions += s.tokens.count() * static_cast<std::int64_t>(s.version.value());
      r->oldest = std::min(r->oldest.value_or(s.version), s.version);
      r->newest = std::max(r->newest.value_or(s.version), s.version);
    }
    if (item.finish == actors::FinishReason::Interrupted)
      continue;
    r->generated = true;
    if (item.finish == actors::FinishReason::Failed)
      fail(*r);
    else
      stored_.generated_lengths.add(r->tokens.count());
    settle_stage(*group);
  }
}

void RunMetrics::on_event(const event::ReferenceScored& e) {
  const auto lease = leases_.find(e.lease.value());
  if (lease == leases_.end() || lease->second.actor != e.actor)
    return;
  for (const ResponseId id : lease->second.responses) {
    const auto [group, r] = find(id);
    if (r == nullptr || r->reference != e.lease)
      continue;
    r->scored = true;
    if (std::ranges::find(e.failed, id) != e.failed.end())
      fail(*r);
    settle_stage(*group);
  }
  leases_.erase(lease);
}

void RunMetrics::on_event(const event::Judged& e) {
  const auto lease = leases_.find(e.lease.value());
  if (lease == leases_.end() || lease->second.actor != e.actor)
    return;
  const std::vector<ResponseId>& responses = lease->second.responses;
  for (std::size_t i = 0; i < responses.size() && i < e.items.size(); ++i) {
    const auto [group, r] = find(responses[i]);
    if (r == nullptr || r->judge != e.lease)
      continue;
    r->judged = true;
    r->reward = e.items[i].reward;
    r->terms = actors::rewards_at(e.terms, i);
    if (e.items[i].failed)
      fail(*r);
    settle_stage(*group);
  }
  leases_.erase(lease);
}

void RunMetrics::on_event(const event::Trained& e) {
  if (!training_ || training_->lease != e.lease)
    return;
  const command::Train train = std::move(*training_);
  training_.reset();
  Update update;
  update.version = e.version;
  update.time = now_;
  update.metrics = e.metrics;
  update.scored = with_reference_;
  const actors::Certificate& c = train.certificate;
  last_batch_ = {c.step, std::nullopt, {}};
  if (c.bound != std::numeric_limits<std::uint64_t>::max())
    last_batch_.bound = c.bound;
  for (const auto& entry : c.groups)
    train_group(entry, c.step, update);
  update.batch.sources = stored_.sources.take(config_->problems);
  if (!c.groups.empty())
    update.staleness_mean /= static_cast<double>(c.groups.size());
  update.tokens = tokens();
  update.groups = groups();
  update.queue = queue_;
  update.judges = judges_;
  const auto judges = judges_.value_or(actors::JudgeUsage());
  update.before = std::exchange(before_, {now_, update.tokens, update.groups, judges});
  updates_.add(update);
  trained_at_[e.version] = now_;
  if (trained_at_.size() > kMostVersions)
    trained_at_.erase(trained_at_.begin());
}

void RunMetrics::train_group(const actors::Certificate::Entry& entry,
                             PolicyVersion step,
                             Update& update) {
  const auto it = groups_.find(entry.group.value());
  if (it == groups_.end())
    return;
  const std::uint64_t age = step.value() - entry.age_from().value();
  update.staleness_mean += static_cast<double>(age);
  update.staleness_max = std::max(update.staleness_max, age);
  stored_.staleness.add(static_cast<std::int64_t>(age));
  ++stored_.groups.trained;
  Tokens tokens;
  std::vector<double> rewards;
  TrainedBatch::Group& trained = last_batch_.groups.emplace_back();
  trained = {entry.group, entry.dispatched, entry.age_from(), {}, {}};
  for (const Response& r : it->second.responses) {
    outstanding_ -= r.tokens;
    if (r.failed)
      continue;
    if (r.oldest) {
      trained.oldest = std::min(trained.oldest.value_or(*r.oldest), *r.oldest);
      trained.newest = std::max(trained.newest.value_or(*r.newest), *r.newest);
    }
    tokens += r.prompt + r.tokens;
    stored_.trained_responses += r.tokens;
    stored_.token_age +=
        r.tokens.count() * static_cast<std::int64_t>(step.value()) - r.token_versions;
    stored_.lengths.add(r.tokens.count());
    update.batch.length.add(static_cast<double>(r.tokens.count()));
    update.batch.reward.add(r.reward);
    for (const auto& [name, reward] : r.terms)
      update.batch.terms[name].add(reward);
    rewards.push_back(r.reward);
  }
  stored_.sources.train(entry.group, rewards);
  stored_.trained += tokens;
  ++update.batch.groups;
  if (config_->responses_per_group == 1 || is_effective(rewards))
    stored_.effective += tokens;
  else
    ++update.batch.equal_groups;
  --depth(it->second.stage);
  groups_.erase(it);
}

void RunMetrics::on_event(const event::WeightsCommitted& e) {
  const auto trained = trained_at_.find(e.version);
  if (!e.error.empty() || trained == trained_at_.end())
    return;
  const Duration lag = now_ - trained->second;
  ++lags_;
  lag_sum_ += lag;
  lag_max_ = std::max(lag_max_, lag);
}

void RunMetrics::on_event(const event::Switched& e) {
  SwitchTotals& t = switches_[e.action];
  ++t.count;
  if (!e.error.empty())
    ++t.refused;
  t.total += e.cost.duration;
  t.longest = std::max(t.longest, e.cost.duration);
  const auto moved = [](Bytes before, Bytes after, Bytes& freed, Bytes& taken) {
    (after < before ? freed : taken) += after < before ? before - after : after - before;
  };
  moved(e.cost.device_before, e.cost.device_after, t.device_freed, t.device_taken);
  moved(e.cost.host_before, e.cost.host_after, t.host_freed, t.host_taken);
  t.process_peak = std::max(t.process_peak, e.cost.process_peak);
}

void RunMetrics::on_event(const event::CheckpointSaved& e) {
  if (!e.error.empty()) {
    ++checkpoints_.failed;
    return;
  }
  ++checkpoints_.saved;
  checkpoints_.last = e.version;
}

// --- Commands

/// `reason`: none at a first launch, or if a Discard before it had the reason.
void RunMetrics::restart(ActorId actor, const std::optional<Reason>& reason) {
  void_leases(actor);
  if (reason)
    restarts_.push_back({Restart::Kind::Actor, now_, name_of_actor(actor), reason});
}

void RunMetrics::on_command(const command::Rollback& c) {
  Reason reason = c.reason;
  const std::string trainer = reason.actor ? name_of_actor(*reason.actor) : std::string();
  reason.actor.reset();
  restarts_.push_back({Restart::Kind::Rollback, now_, trainer, std::move(reason)});
}

void RunMetrics::on_command(const command::Dispatch& c) {
  end_start();
  stored_.sources.dispatch(c.group, c.draw);
  const auto [it, fresh] = groups_.try_emplace(c.group.value());
  if (fresh) {
    it->second.responses.resize(ids_.per_group());
    ++depth(it->second.stage);
  }
  for (const ResponseId r : c.responses) {
    Response& to = it->second.responses[ids_.place_of(r)];
    to.generate = c.lease;
    to.engine = c.actor;
  }
}

void RunMetrics::on_command(const command::ScoreReference& c) {
  leases_[c.lease.value()] = {c.actor, c.responses};
  for (const ResponseId id : c.responses) {
    if (Response* const r = find(id).second)
      r->reference = c.lease;
  }
}

void RunMetrics::on_command(const command::Judge& c) {
  leases_[c.lease.value()] = {c.actor, c.responses};
  for (const ResponseId id : c.responses) {
    if (Response* const r = find(id).second)
      r->judge = c.lease;
  }
}

void RunMetrics::on_command(const command::Train& c) {
  end_start();
  training_ = c;
  for (const auto& entry : c.certificate.groups) {
    if (const auto it = groups_.find(entry.group.value()); it != groups_.end())
      move_to(it->second, Stage::Training);
  }
}

void RunMetrics::on_command(const command::Release& c) {
  if (c.outcome == Outcome::Trained)
    return;  // Counted when the step completed.
  if (c.outcome == Outcome::Failed)
    last_failure_ = fmt::format("group {}: {}", c.group, sentence(c.reason, config_->actors));
  ++(c.outcome == Outcome::Failed    ? stored_.groups.failed
     : c.outcome == Outcome::Evicted ? stored_.groups.evicted
                                     : stored_.groups.filtered);
  stored_.sources.drop(c.group);
  const auto it = groups_.find(c.group.value());
  if (it == groups_.end())
    return;
  for (const Response& r : it->second.responses)
    outstanding_ -= r.tokens;
  --depth(it->second.stage);
  groups_.erase(it);
}

}  // namespace temper::orchestrator
