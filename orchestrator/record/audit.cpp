#include "orchestrator/record/audit.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "orchestrator/scheduler/queue/response_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace temper::orchestrator {

void Auditor::feed(const Record& record) {
  current_ = record.sequence;
  ++records_;
  if (record.time < last_time_)
    violation("time decreases");
  last_time_ = std::max(last_time_, record.time);
  if (!ended_ || std::holds_alternative<event::Resumed>(record.event))
    end_ = record.time;
  std::visit([this](const auto& e) { on_event(e); }, record.event);
  for (const Command& command : record.commands) {
    std::visit([this](const auto& c) { on_command(c); }, command);
  }
  if (!ended_ && !std::holds_alternative<event::Activity>(record.event))
    check_waits();
  check_tail();
  // After the commands, because a snapshot of the scheduler contains them, though their leases are
  // void.
  if (std::holds_alternative<event::Started>(record.event) ||
      std::holds_alternative<event::CheckpointSaved>(record.event)) {
    saved_[record.sequence] = state_;
    if (saved_.size() > kMostWaysBack + 1)
      saved_.erase(std::next(saved_.begin()));
  }
}

AuditReport Auditor::report() const {
  AuditReport r;
  r.records = records_;
  r.voided = voided_;
  r.steps = state_.version;
  r.groups_dispatched = state_.dispatched;
  r.groups_trained = state_.trained;
  r.groups_filtered = state_.filtered;
  r.groups_failed = state_.failed;
  r.groups_outstanding = state_.outstanding.size();
  r.max_staleness = state_.age_max;
  r.groups_evicted = state_.evicted;
  r.bound = bound();
  r.ended = ended_;
  r.end = end_;
  if (state_.trained > 0) {
    r.mean_staleness = static_cast<double>(state_.age_sum) / static_cast<double>(state_.trained);
  }
  r.clocks = clocks_.size();
  r.clock_apart = clock_apart_;
  for (const auto& [actor, last] : clocks_)
    r.clock_error = std::max(r.clock_error, last.error);
  r.attached = attached_;
  std::set<std::string> hosts;
  for (const auto& [actor, host] : host_of_)
    hosts.insert(host);
  r.hosts = hosts.size();
  r.tail = tail_.sum + (tail_.since ? last_time_ - *tail_.since : Duration{});
  r.violations = violations_;
  if (r.groups_dispatched != r.groups_trained + r.groups_filtered + r.groups_failed +
                                 r.groups_evicted + r.groups_outstanding) {
    r.violations.push_back(
        "dispatched groups are not the sum of trained, filtered, failed and outstanding groups");
  }
  return r;
}

void Auditor::violation(const std::string& what) {
  if (violations_.size() < kMostViolations) {
    violations_.push_back(fmt::format("record {}: {}", current_, what));
  }
}

void Auditor::note(const std::vector<std::string>& violations) {
  for (const std::string& what : violations)
    violation(what);
}

std::uint64_t Auditor::group_of(std::uint64_t response) const {
  return ResponseIds(config_.responses_per_group).group_of(ResponseId(response)).value();
}

Auditor::ResponseState* Auditor::response(std::uint64_t id) {
  const auto group = state_.outstanding.find(group_of(id));
  if (group == state_.outstanding.end())
    return nullptr;
  return &group->second.responses[id];
}

void Auditor::grant(ActorId actor, LeaseId lease, const std::vector<ResponseId>& responses) {
  LeaseState& state = state_.leases[lease.value()];
  if (!state.responses.empty())
    violation(fmt::format("lease {} is granted twice", lease));
  state.actor = actor.value();
  for (const ResponseId r : responses) {
    state.responses.push_back(r.value());
    if (response(r.value()) == nullptr) {
      violation(fmt::format("response {} is leased but its group is not outstanding", r));
    }
  }
}

Auditor::LeaseState* Auditor::granted(LeaseId lease, ActorId actor) {
  const auto it = state_.leases.find(lease.value());
  if (it == state_.leases.end() || it->second.actor != actor.value())
    return nullptr;
  return &it->second;
}

std::optional<std::uint64_t> Auditor::bound() const {
  switch (config_.staleness_rule) {
    case StalenessRuleKind::Sync:
      return 0;
    case StalenessRuleKind::Exact:
    case StalenessRuleKind::Window:
    case StalenessRuleKind::InOrder:
      return config_.staleness_bound;
    case StalenessRuleKind::Drop:
      return config_.staleness_bound - 1;
    case StalenessRuleKind::Aggregate:
    case StalenessRuleKind::Count:
    case StalenessRuleKind::Wait:
      return std::nullopt;
  }
  return std::nullopt;
}

bool Auditor::shared_cards_hold_engines() const {
  return std::any_of(
      state_.engine_version.begin(), state_.engine_version.end(), [&](const auto& e) {
        return takes_turns(ActorId(e.first)) && is_of_share(e.first);
      });
}

// --- Events

void Auditor::on_event(const event::Started& e) {
  if (current_ != 0)
    violation("a second start; a run starts once, at record 0");
  config_ = *e.config;
  state_.evaluation.start(config_.evaluation, config_.problems);
  state_.problems.use(config_.problems);
}

void Auditor::on_event(const event::Resumed& e) {
  const auto it = saved_.find(e.sequence);
  if (it == saved_.end())
    return violation("resumes from a record that is not one of the latest checkpoints");
  voided_ += current_ - e.sequence - 1;
  state_ = it->second;
  state_.leases.clear();
  state_.engine_version.clear();
  state_.visiting.clear();
  state_.trainer_parked = false;
  state_.updating = 0;
  state_.share.reset();
  for (auto& [id, group] : state_.outstanding) {
    group.in_update = 0;
    group.promised = false;
  }
  for (const ResponseId lost : e.lost)
    start_over(lost);
  ended_ = false;
  tail_.awaited = tail_.counts = false;
  if (e.config) {
    change_actors((*e.config)->actors);
    config_ = **e.config;
  }
  state_.evaluation.resume(config_.evaluation, config_.problems);
  state_.problems.use(config_.problems);
  recount_stages();
  batches_.drop_from(state_.version);
  saved_.erase(std::next(it), saved_.end());
}

void Auditor::change_actors(const std::vector<ActorSpec>& actors) {
  const auto same = [](const ActorSpec& a, const ActorSpec& b) {
    return a.name == b.name && a.role == b.role;
  };
  if (actors.size() < config_.actors.size() ||
      !std::equal(config_.actors.begin(), config_.actors.end(), actors.begin(), same))
    violation("the id of an actor changes its meaning");
  config_.actors = actors;
}

void Auditor::on_event(const event::Generated& e) {
  for (const auto& item : e.items) {
    if (is_evaluation(item.lease)) {
      note(state_.evaluation.generated(e.actor, item));
      continue;
    }
    LeaseState* lease = granted(item.lease, e.actor);
    if (lease == nullptr)
      continue;
    const auto held =
        std::find(lease->responses.begin(), lease->responses.end(), item.response.value());
    if (held == lease->responses.end())
      continue;
    lease->responses.erase(held);
    if (lease->responses.empty())
      state_.leases.erase(item.lease.value());
    ResponseState* r = response(item.response.value());
    if (r == nullptr)
      continue;
    if (r->generated)
      violation(fmt::format("response {} is generated twice", item.response));
    std::int64_t tokens = 0;
    const GroupState& group = state_.outstanding.at(group_of(item.response.value()));
    for (const actors::Segment& s : item.segments) {
      tokens += s.tokens.count();
      if (s.version.value() < group.dispatched || s.version.value() < r->last_version) {
        violation(fmt::format("response {} has tokens of version {}, older than its dispatch",
                              item.response,
                              s.version));
      }
      if (s.version.value() > state_.version) {
        violation(fmt::format("response {} has tokens of an unpublished version", item.response));
      }
      if (config_.one_version && r->begun && s.version.value() != r->last_version)
        violation(fmt::format("response {} has tokens of several versions", item.response));
      if (!r->begun)
        r->first_version = s.version.value();
      r->begun = true;
      r->last_version = s.version.value();
      r->version_sum += s.version.value() * static_cast<std::uint64_t>(s.tokens.count());
    }
    if (tokens != item.tokens.count()) {
      violation(fmt::format("the segments of response {} do not sum to its number of tokens",
                            item.response));
    }
    r->tokens += static_cast<std::uint64_t>(tokens);
    if (item.finish == actors::FinishReason::Failed)
      r->failed = true;
    else if (item.finish != actors::FinishReason::Interrupted && r->tokens == 0)
      violation(fmt::format("response {} ended without a token", item.response));
    r->generated = item.finish != actors::FinishReason::Interrupted;
    set_stage(item.response.value(), *r);
    if (config_.age == AgeRule::TokenWeighted)
      weigh(state_.outstanding.at(group_of(item.response.value())));
  }
}

/// Recomputes the version that the age of a generated group counts from: the mean of its tokens, or
/// what it was after an earlier generation if that was younger.
void Auditor::weigh(GroupState& group) {
  std::uint64_t tokens = 0, sum = 0;
  for (const auto& [id, r] : group.responses) {
    if (!r.generated)
      return;
    tokens += r.tokens;
    sum += r.version_sum;
  }
  if (tokens > 0)
    group.age_from = std::max(group.age_from, sum / tokens);
}

void Auditor::on_event(const event::ReferenceScored& e) {
  LeaseState* lease = granted(e.lease, e.actor);
  if (lease == nullptr)
    return;
  for (const std::uint64_t id : lease->responses) {
    if (ResponseState* r = response(id)) {
      r->scored = true;
      r->failed = r->failed || std::ranges::find(e.failed, ResponseId(id)) != e.failed.end();
    }
  }
  state_.leases.erase(e.lease.value());
}

void Auditor::on_event(const event::Judged& e) {
  if (is_evaluation(e.lease))
    return note(state_.evaluation.judged(e));
  LeaseState* lease = granted(e.lease, e.actor);
  if (lease == nullptr)
    return;
  for (std::size_t i = 0; i < lease->responses.size() && i < e.items.size(); ++i) {
    ResponseState* r = response(lease->responses[i]);
    if (r == nullptr)
      continue;
    if (r->judged)
      violation(fmt::format("response {} is judged twice", lease->responses[i]));
    r->judged = true;
    r->reward = e.items[i].reward;
    r->failed = r->failed || e.items[i].failed;
    if (r->failed)
      state_.waits.settled(lease->responses[i]);
  }
  state_.leases.erase(e.lease.value());
}

void Auditor::on_event(const event::Trained& e) {
  if (granted(e.lease, e.actor) == nullptr)
    return;
  // Its own leases, and those of groups whose gradients were requested before.
  std::erase_if(state_.leases, [&](const auto& l) { return l.second.actor == e.actor.value(); });
  state_.updating = 0;
  tail_.counts = true;
  if (e.version.value() != state_.version + 1)
    violation("a step skips a version");
  std::uint64_t in_update = 0;
  for (const auto& [id, group] : state_.outstanding) {
    if (group.in_update == e.lease.value())
      ++in_update;
  }
  if (in_update != e.groups.size())
    violation("the trainer reports other groups than it received");
  AuditedBatch batch{state_.version, bound(), {}};
  for (const GroupId g : e.groups) {
    const auto it = state_.outstanding.find(g.value());
    if (it == state_.outstanding.end() || it->second.in_update != e.lease.value()) {
      violation(fmt::format("group {} was trained, but is not in this step", g));
      continue;
    }
    const std::uint64_t age = state_.version - it->second.age_from;
    if (const auto most = bound(); most && age > *most) {
      violation(fmt::format(
          "group {} was trained at age {}, above the staleness bound {}", g, age, *most));
    }
    state_.age_sum += age;
    state_.age_max = std::max(state_.age_max, age);
    ++state_.trained;
    batch.groups.push_back(certified(g.value(), it->second));
    drop(it, Outcome::Trained);
  }
  std::ranges::sort(batch.groups, {}, &AuditedBatch::Group::id);
  if (batches_.size() == 0 || batches_.at(batches_.size() - 1).step <= batch.step)
    batches_.add(batch);
  state_.version = e.version.value();
}

void Auditor::on_event(const event::TensorsLost& e) {
  const auto lease = state_.leases.find(e.lease.value());
  if (lease == state_.leases.end())
    return violation(fmt::format("tensors of lease {} are lost, which nobody holds", e.lease));
  const bool step = state_.updating == e.lease.value();
  const std::set<std::uint64_t> batch(lease->second.responses.begin(),
                                      lease->second.responses.end());
  for (const std::uint64_t id : batch) {
    const auto group = state_.outstanding.find(group_of(id));
    if (group == state_.outstanding.end())
      continue;
    if (step)
      group->second.in_update = 0;
    else
      group->second.promised = false;
  }
  if (step)
    state_.updating = 0;
  state_.leases.erase(lease);
  for (const ResponseId lost : e.lost) {
    const auto group = state_.outstanding.find(group_of(lost.value()));
    if (!batch.contains(lost.value()) ||
        (group != state_.outstanding.end() && group->second.promised))
      violation(fmt::format("response {} is lost, but it is not in the batch", lost));
    else
      start_over(lost);
  }
}

void Auditor::start_over(ResponseId lost) {
  ResponseState* r = response(lost.value());
  if (r == nullptr || !r->generated || r->failed)
    return violation(fmt::format("response {} is lost, but it was not there", lost));
  *r = {};
  set_stage(lost.value(), *r);
}

AuditedBatch::Group Auditor::certified(std::uint64_t id, const GroupState& group) {
  AuditedBatch::Group out{id, group.dispatched, group.age_from, {}, {}};
  for (const auto& [response, r] : group.responses) {
    if (r.failed || !r.begun)
      continue;
    out.oldest = std::min(out.oldest.value_or(r.first_version), r.first_version);
    out.newest = std::max(out.newest.value_or(r.last_version), r.last_version);
  }
  return out;
}

void Auditor::on_event(const event::WeightsCommitted& e) {
  if (!e.error.empty())
    return;
  if (e.version.value() > state_.version)
    violation("an engine reports an unpublished version");
  const auto [it, fresh] = state_.engine_version.try_emplace(e.actor.value(), e.version.value());
  if (!fresh && e.version.value() < it->second) {
    violation(fmt::format("engine {} returns to the older version {}", e.actor, e.version));
  }
  it->second = e.version.value();
}

void Auditor::on_event(const event::Switched& e) {
  using A = actors::SwitchAction;
  if (!e.error.empty())
    return;
  if (e.action == A::FreeWeights)
    state_.engine_version.erase(e.actor.value());
  if (e.action == A::OffloadOptimizer)
    state_.trainer_parked = true;
  if (e.action == A::OffloadReference)
    state_.visiting.erase(e.actor.value());
}

void Auditor::on_event(const event::CheckpointSaved& e) {
  if (e.error.empty() && e.version.value() != state_.version) {
    violation("a checkpoint has another version than the run");
  }
}

void Auditor::on_event(const event::ClockRead& e) {
  if (e.error < Duration(0))
    violation(fmt::format("the clock of actor {} was read with a negative error", e.actor));
  clocks_[e.actor.value()] = e;
  clock_apart_ = std::max(clock_apart_,
                          std::chrono::abs(std::clamp(e.ahead, -Duration::max(), Duration::max())));
}

void Auditor::on_event(const event::WorkerAttached& e) {
  const bool may_attach =
      e.actor.value() < config_.actors.size() && config_.actors[e.actor.value()].attached;
  if (!may_attach)
    violation(fmt::format("a worker attached as actor {}, whose worker the run starts", e.actor));
  ++attached_;
  host_of_[e.actor.value()] = e.host;
}

void Auditor::on_event(const event::Activity& e) {
  Time& until = busy_until_[e.actor.value()];
  for (const actors::Span& s : e.spans) {
    if (s.begin < until || s.end < s.begin) {
      violation(fmt::format("activity spans of actor {} overlap", e.actor));
    }
    until = std::max(until, s.end);
  }
}

}  // namespace temper::orchestrator
