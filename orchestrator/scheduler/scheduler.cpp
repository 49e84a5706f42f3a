#include "orchestrator/scheduler/scheduler.hpp"

#include "core/msgpack.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Most responses between the oldest group and the youngest: tables are made by their numbers.
constexpr std::uint64_t kWidestTable = std::uint64_t{1} << 26;

/// What of it no run of this configuration ever was; empty: nothing.
std::string impossible(const DistQueue& queue,
                       const OutstandingGroups& standing,
                       std::uint64_t next_group,
                       const SchedulerConfig& config) {
  const std::uint64_t each = ResponseIds(config.responses_per_group).per_group();
  if (standing.batch != config.groups_per_update || queue.ids().per_group() != each)
    return fmt::format("updates of {} groups of {}", standing.batch, queue.ids().per_group());
  if (queue.groups().empty())
    return {};
  const std::uint64_t first = queue.groups().begin()->first.value();
  const std::uint64_t last = queue.groups().rbegin()->first.value();
  if (last >= std::min(next_group, std::numeric_limits<std::uint64_t>::max() / each) ||
      last - first >= kWidestTable / each)
    return fmt::format("groups {} to {} of {}", first, last, next_group);
  for (const auto& [id, group] : queue.groups()) {
    if (group.rows.size() != each)
      return fmt::format("group {} of {} responses", id, group.rows.size());
  }
  return {};
}

}  // namespace

template <class V>
void describe(V& v, Progress& p) {
  v.field(1, "version", p.version);
  v.field(2, "groups_dispatched", p.groups_dispatched);
  v.field(3, "groups_trained", p.groups_trained);
  v.field(4, "groups_failed", p.groups_failed);
  v.field(5, "responses_failed", p.responses_failed);
  v.field(6, "groups_evicted", p.groups_evicted);
  v.field(7, "groups_filtered", p.groups_filtered);
}

template <class V>
void describe(V& v, Scheduler::SavedState& s) {
  v.field(1, "progress", s.progress);
  v.field(2, "next_group", s.next_group);
  v.field(3, "queue", s.queue);
  v.field(5, "standing", s.standing);
  v.field(6, "filtered_since_update", s.filtered_since_update);
  v.field(7, "failed_since_update", s.failed_since_update);
  v.field(8, "evaluated", s.evaluated);
  v.field(9, "best", s.best);
}

Commands Scheduler::on(const Event& event, Time now) {
  TEMPER_CHECK(now >= now_, "time went back");
  now_ = now;
  out_.clear();
  if (finished_) {
    if (const auto* activity = std::get_if<event::Activity>(&event))
      handle(*activity);
    return {};
  }
  std::visit([this](const auto& e) { handle(e); }, event);
  if (!std::holds_alternative<event::Activity>(event)) {
    expire();
    start_waiting();
    evict();
    evaluate();
    checkpoint_or_end();
    drive_switch();
    train();
    prepare();
    publish_weights();
    dispatch();
    drive_switch();
    migrate();
    call_references();
    score(Task::Reference, actors::RoleKind::Reference, config_.deadlines.reference);
    score(Task::Reward, actors::RoleKind::Reward, config_.deadlines.reward);
    judge_evaluation();
    retire();
    update_waits();
  }
  return std::move(out_);
}

std::optional<Time> Scheduler::next_deadline() const {
  if (finished_)
    return std::nullopt;
  std::optional<Time> earliest;
  for (const auto& t : {fleet_.next_deadline(),
                        stored_.queue.next_deadline(),
                        evaluation_.table().next_deadline(),
                        saving_,
                        drain_deadline_,
                        held_until_}) {
    if (t && *t != Time::max())
      earliest = earliest ? std::min(*earliest, *t) : *t;
  }
  return earliest;
}

std::string Scheduler::snapshot() const {
  return encode(stored_);
}

Result<Scheduler> Scheduler::restored(const SchedulerConfig& config, std::string_view snapshot) {
  Scheduler scheduler;
  scheduler.configure(config);
  if (!snapshot.empty()) {
    const double bound = scheduler.stored_.standing.bound;
    TEMPER_TRY(scheduler.stored_, decode<SavedState>(snapshot));
    const SavedState& saved = scheduler.stored_;
    if (const auto what = impossible(saved.queue, saved.standing, saved.next_group, config);
        !what.empty())
      return corrupt("a checkpoint whose scheduler has " + what + " is none of this run");
    scheduler.stored_.standing.bound = bound;  // the run may have been resumed with another
    scheduler.stored_.queue.set_credits(scheduler.credits());
    scheduler.stored_.queue.rebuild();
  }
  return scheduler;
}

void Scheduler::configure(const SchedulerConfig& config) {
  config_ = config;
  policy_ = make_staleness_rule(config_.policy);
  stored_.standing = OutstandingGroups();
  stored_.standing.batch = config_.groups_per_update;
  if (config_.policy != StalenessRuleKind::Sync)
    stored_.standing.bound =
        static_cast<double>(config_.staleness_bound) + config_.staleness_fraction;
  stored_.queue = DistQueue(config_.has_reference(), config_.responses_per_group, credits());
  evaluation_ = Evaluation(config_.evaluation);
  judging_.clear();
}

/// Most responses that may be in the table at once.
std::int64_t Scheduler::credits() const {
  return static_cast<std::int64_t>(stored_.standing.capacity()) * config_.responses_per_group;
}

// --- What happened

void Scheduler::handle(const event::Started& e) {
  configure(e.config);
  launch_all();
}

void Scheduler::handle(const event::Resumed& e) {
  rollbacks_ = e.rollbacks;
  training_.reset();
  prepared_.clear();
  preparing_.reset();
  saving_.reset();
  drain_deadline_.reset();
  stop_requested_ = false;
  saved_ = stored_.progress.version;
  rewarded_ = stored_.progress.version > PolicyVersion();
  launch_all();
}

void Scheduler::handle(const event::ActorReady& e) {
  ActorState& a = fleet_.state(e.actor);
  if (a.life != Life::Launching)
    return;
  if (e.actor == fleet_.trainer() && e.weights != stored_.progress.version) {
    return finish(Ending::Failed,
                  Reason{.kind = ReasonKind::WrongWeights,
                         .actor = e.actor,
                         .version = e.weights,
                         .expected = stored_.progress.version});
  }
  fleet_.renew(e.actor, Life::Ready);
  a.ready_since = now_;
}

void Scheduler::handle(const event::ActorDown& e) {
  if (e.permanent && is_first_start(e.actor)) {
    fleet_.state(e.actor).life = Life::Down;
    Reason reason = reason_with(ReasonKind::CannotStart, e.reason);
    reason.actor = e.actor;
    return finish(Ending::Failed, std::move(reason));
  }
  lose(e.actor,
       reason_with(e.lied ? ReasonKind::ProtocolViolation : ReasonKind::WorkerLost, e.reason));
}

/// Its time starts anew, but not for ever.
void Scheduler::handle(const event::ActorLoading& e) {
  ActorState& a = fleet_.state(e.actor);
  if (a.life == Life::Launching)
    a.launch_deadline =
        std::max(a.launch_deadline, std::min(now_ + start_limit(e.actor), latest_start(e.actor)));
}

void Scheduler::handle(const event::Generated& e) {
  DistQueue& queue = stored_.queue;
  std::int64_t generated = 0;
  for (const auto& item : e.items) {
    if (is_evaluation(item.lease)) {
      take_evaluated(e.actor, item);
      continue;
    }
    const Lease* lease = queue.find(item.lease);
    if (finished_ || lease == nullptr || lease->actor != e.actor ||
        !queue.holds(item.lease, item.response))
      continue;
    queue.extend(item.lease, now_ + config_.deadlines.generate);
    queue.append_tokens(item.response, item.prompt, item.tokens, item.segments);
    withdrawn_.erase(item.response);
    if (item.finish == actors::FinishReason::Interrupted) {
      queue.set_cached(item.response, item.cached ? std::optional(e.actor) : std::nullopt);
      queue.give_back(item.lease, item.response);
      continue;
    }
    if (item.finish == actors::FinishReason::Failed) {
      queue.commit(item.lease, item.response);
      recount_age(queue.group_of(item.response));
      fail_response(item.response, reason_with(ReasonKind::NotGenerated, e.failure));
    } else {
      queue.commit(item.lease, item.response, Field::Response);
      recount_age(queue.group_of(item.response));
      forecast_.ended(queue.row(item.response)->tokens);
      ++generated;
    }
  }
  if (fleet_.lends())
    lending_.generated(generated, now_);
}

/// A group that is generated is as old as its tokens are on average, if that is the rule.
void Scheduler::recount_age(GroupId id) {
  if (config_.age == AgeRule::FirstToken)
    return;
  const auto version = stored_.queue.mean_version(id);
  if (!version)
    return;
  stored_.standing.recount(stored_.queue.group(id)->age_from(), *version);
  stored_.queue.count_age(id, *version);
}

void Scheduler::handle(const event::ReferenceScored& e) {
  const Lease* lease = stored_.queue.find(e.lease);
  if (lease == nullptr || lease->actor != e.actor)
    return;
  const std::vector<ResponseId> responses = lease->responses;
  for (const ResponseId r : responses) {
    if (!stored_.queue.holds(e.lease, r))
      continue;
    if (std::ranges::find(e.failed, r) != e.failed.end()) {
      stored_.queue.commit(e.lease, r);
      fail_response(r, reason_with(ReasonKind::NotScored, e.failure));
      if (finished_)
        return;
      continue;
    }
    stored_.queue.commit(e.lease, r, Field::ReferenceLogprobs);
    note_trainable(stored_.queue.group_of(r));
  }
}

void Scheduler::handle(const event::Judged& e) {
  rewarded_ = rewarded_ || !std::ranges::all_of(e.items, &event::Judged::Item::failed);
  if (e.gave_up && !rewarded_) {
    Reason reason = reason_with(ReasonKind::VerifierNeverWorked, e.failure);
    reason.actor = e.actor;
    return finish(Ending::Failed, std::move(reason));
  }
  if (is_evaluation(e.lease))
    return take_evaluated(e);
  const Lease* lease = stored_.queue.find(e.lease);
  if (lease == nullptr || lease->actor != e.actor)
    return;
  const std::vector<ResponseId> responses = lease->responses;
  for (std::size_t i = 0; i < responses.size() && i < e.items.size() && !finished_; ++i) {
    if (!stored_.queue.holds(e.lease, responses[i]))
      continue;
    if (e.items[i].failed) {
      stored_.queue.commit(e.lease, responses[i]);
      fail_response(responses[i], reason_with(ReasonKind::NotJudged, e.failure));
    } else {
      stored_.queue.commit_reward(e.lease, responses[i], e.items[i].reward);
      note_trainable(stored_.queue.group_of(responses[i]));
      filter(stored_.queue.group_of(responses[i]));
    }
  }
}

void Scheduler::handle(const event::Trained& e) {
  if (!training_ || e.lease != *training_)
    return;
  training_.reset();
  just_in_time_.update_ends(now_);
  const std::vector<GroupId> groups = std::exchange(batch_, {});
  prepared_.push_back(e.lease);
  for (const LeaseId lease : std::exchange(prepared_, {})) {
    const Lease* held = stored_.queue.find(lease);
    const std::vector<ResponseId> responses =
        held == nullptr ? std::vector<ResponseId>{} : held->responses;
    for (const ResponseId r : responses)
      stored_.queue.commit(lease, r);
  }
  stored_.progress.version = next(stored_.progress.version);
  stored_.progress.groups_trained += groups.size();
  stored_.filtered_since_update = stored_.failed_since_update = 0;
  for (const GroupId g : groups)
    release(g, Outcome::Trained);
  stored_.standing.publish(stored_.progress.version);
}

void Scheduler::handle(const event::WeightsStaged& e) {
  ActorState& a = fleet_.state(e.actor);
  if (!a.ready() || a.staging != e.version)
    return;
  if (!e.error.empty()) {
    a.staging.reset();  // a newer version is tried at once
    if (e.version == stored_.progress.version)
      lose(e.actor, reason_with(ReasonKind::WeightsNotStaged, e.error));
    else if (evaluation_.version() == e.version)
      evaluate_anew();
    return;
  }
  a.staged = true;
}

void Scheduler::handle(const event::WeightsCommitted& e) {
  ActorState& a = fleet_.state(e.actor);
  if (!a.ready() || a.staging != e.version || !a.committing)
    return;
  a.staging.reset();
  a.staged = a.committing = false;
  if (!e.error.empty())
    return lose(e.actor, reason_with(ReasonKind::WeightsRefused, e.error));
  a.version = e.version;
}

void Scheduler::handle(const event::Switched& e) {
  ActorState& a = fleet_.state(e.actor);
  if (!a.ready() || a.switching != e.action)
    return;
  a.switching.reset();
  using A = actors::SwitchAction;
  if (!e.error.empty()) {
    if (e.action == A::OnloadOptimizer)
      return switch_.onload_refused(e.error);
    Reason reason = reason_with(ReasonKind::SwitchFailed, e.error);
    reason.action = e.action;
    return lose(e.actor, std::move(reason));
  }
  if (e.action == A::AllocateKv)
    a.has_kv = true;
  if (e.action == A::FreeKv)
    a.has_kv = false;
  if (e.action == A::FreeWeights)
    a.version.reset();
  if (e.action == A::OnloadReference)
    a.onboard = true;
  if (e.action == A::OffloadReference)
    a.onboard = false;
}

void Scheduler::handle(const event::CheckpointSaved& e) {
  saving_.reset();
  if (!e.error.empty()) {
    Reason reason = reason_with(ReasonKind::CheckpointFailed, e.error);
    reason.version = e.version;
    return finish(Ending::Failed, std::move(reason));
  }
  saved_ = e.version;
  forgive_restarts();
}

void Scheduler::handle(const event::Activity& e) {
  for (const actors::Span& span : e.spans) {
    Time& until = fleet_.state(e.actor).busy_until;
    until = std::max(until, span.end);
  }
}

void Scheduler::handle(const event::StopRequested&) {
  if (stop_requested_)
    return;
  stop_requested_ = true;
  drain_deadline_ = now_ + config_.deadlines.drain;
}

void Scheduler::finish(Ending how, std::optional<Reason> reason, std::optional<Reason> last) {
  if (finished_)
    return;
  finished_ = true;
  emit(command::Finish{
      how == Ending::Complete, how == Ending::Stopped, std::move(reason), std::move(last)});
}

}  // namespace temper::orchestrator
