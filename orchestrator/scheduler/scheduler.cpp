#include "orchestrator/scheduler/scheduler.hpp"

#include "core/msgpack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace temper::orchestrator {

template <class V>
void describe(V& v, Progress& p) {
  v.field(1, "version", p.version);
  v.field(2, "groups_dispatched", p.groups_dispatched);
  v.field(3, "groups_trained", p.groups_trained);
  v.field(4, "groups_failed", p.groups_failed);
  v.field(5, "responses_failed", p.responses_failed);
  v.field(6, "groups_evicted", p.groups_evicted);
}

template <class V>
void describe(V& v, Scheduler::Stored& s) {
  v.field(1, "progress", s.progress);
  v.field(2, "next_group", s.next_group);
  v.field(3, "queue", s.queue);
  v.field(5, "standing", s.standing);
}

Commands Scheduler::on(const Event& event, Time now) {
  TEMPER_CHECK(now >= now_, "time went back");
  now_ = now;
  out_.clear();
  if (finished_)
    return {};
  std::visit([this](const auto& e) { handle(e); }, event);
  if (!std::holds_alternative<event::Activity>(event)) {
    expire();
    evict();
    checkpoint_or_end();
    drive_switch();
    train();
    publish_weights();
    dispatch();
    drive_switch();
    call_references();
    score(Task::Reference, actors::RoleKind::Reference, config_.deadlines.reference);
    score(Task::Reward, actors::RoleKind::Reward, config_.deadlines.reward);
    update_waits();
  }
  return std::move(out_);
}

std::optional<Time> Scheduler::next_deadline() const {
  if (finished_)
    return std::nullopt;
  std::optional<Time> earliest;
  for (const auto& t :
       {fleet_.next_deadline(), stored_.queue.next_deadline(), saving_, drain_deadline_}) {
    if (t)
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
    TEMPER_TRY(scheduler.stored_, decode<Stored>(snapshot));
    scheduler.stored_.queue.rebuild();
  }
  return scheduler;
}

void Scheduler::configure(const SchedulerConfig& config) {
  config_ = config;
  policy_ = make_policy(config_.policy);
  stored_.standing = Standing();
  stored_.standing.batch = config_.groups_per_update;
  if (config_.policy != PolicyRule::Sync)
    stored_.standing.bound =
        static_cast<double>(config_.staleness_bound) + config_.staleness_fraction;
  const auto groups = static_cast<std::int64_t>(stored_.standing.capacity());
  stored_.queue = DistQueue(
      config_.has_reference(), config_.responses_per_group, groups * config_.responses_per_group);
}

// --- What happened

void Scheduler::handle(const event::Started& e) {
  configure(e.config);
  launch_all();
}

void Scheduler::handle(const event::Resumed& e) {
  rollbacks_ = e.rollbacks;
  training_.reset();
  saving_.reset();
  drain_deadline_.reset();
  stop_requested_ = false;
  saved_ = stored_.progress.version;
  launch_all();
}

void Scheduler::launch_all() {
  fleet_ = Fleet(config_.actors);
  switch_ = RoleSwitch(fleet_);
  const std::size_t lent = fleet_.turning_engines().size();
  lending_ = Lending(fleet_.rollouts().size() - lent,
                     lent,
                     std::int64_t{config_.groups_per_update} * config_.responses_per_group);
  withdrawn_.clear();
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    ActorState& a = fleet_.state(ActorId(i));
    a.life = Life::Launching;
    a.launch_deadline = now_ + config_.deadlines.start;
    emit(command::Launch{ActorId(i), ""});
  }
}

void Scheduler::handle(const event::ActorReady& e) {
  ActorState& a = fleet_.state(e.actor);
  if (a.life != Life::Launching)
    return;
  if (e.actor == fleet_.trainer() && e.weights != stored_.progress.version) {
    finish(false,
           false,
           fmt::format("{} came up with weights version {} where the run is at version {}; is the "
                       "checkpoint folder complete?",
                       fleet_.spec(e.actor).name,
                       e.weights ? e.weights->value() : 0,
                       stored_.progress.version));
    return;
  }
  const auto restarts = a.restarts;
  const auto waiting = a.waiting;
  a = ActorState{};
  a.life = Life::Ready;
  a.restarts = restarts;
  a.waiting = waiting;
}

void Scheduler::handle(const event::ActorDown& e) {
  lose(e.actor, e.reason);
}

void Scheduler::lose(ActorId actor, const std::string& reason) {
  ActorState& a = fleet_.state(actor);
  if (a.life == Life::Down)
    return;
  const std::string& name = fleet_.spec(actor).name;
  stored_.queue.revoke_all(actor);
  std::erase_if(withdrawn_,
                [this](ResponseId r) { return stored_.queue.ready(Task::Generate).contains(r); });
  if (actor == fleet_.trainer()) {
    a.life = Life::Down;
    // Its weights and optimizer are gone: everything since the last checkpoint is done again.
    if (rollbacks_ >= config_.max_restarts) {
      return finish(false,
                    false,
                    fmt::format("{} was lost {} times; last: {}", name, rollbacks_ + 1, reason));
    }
    finished_ = true;  // this scheduler's future is void; the driver resumes
    emit(command::Rollback{fmt::format("{}: {}", name, reason)});
    return;
  }
  if (a.restarts >= config_.max_restarts) {
    a.life = Life::Down;
    return finish(
        false, false, fmt::format("{} was lost {} times; last: {}", name, a.restarts + 1, reason));
  }
  const auto restarts = a.restarts + 1;
  const auto waiting = a.waiting;
  a = ActorState{};
  a.life = Life::Launching;
  a.restarts = restarts;
  a.waiting = waiting;
  a.launch_deadline = now_ + config_.deadlines.start;
  emit(command::Launch{actor, reason});
}

void Scheduler::handle(const event::Generated& e) {
  DistQueue& queue = stored_.queue;
  std::int64_t generated = 0;
  for (const auto& item : e.items) {
    const Lease* lease = queue.find(item.lease);
    if (lease == nullptr || lease->actor != e.actor || !queue.holds(item.lease, item.response))
      continue;
    queue.extend(item.lease, now_ + config_.deadlines.generate);
    queue.append_tokens(item.response, item.prompt, item.tokens, item.segments);
    withdrawn_.erase(item.response);
    if (item.finish == actors::FinishReason::Interrupted) {
      queue.give_back(item.lease, item.response);
      continue;
    }
    if (item.finish == actors::FinishReason::Failed) {
      queue.commit(item.lease, item.response);
      ++stored_.progress.responses_failed;
      queue.fail(item.response);
      settle_failures(queue.group_of(item.response));
    } else {
      queue.commit(item.lease, item.response, Field::Response);
      ++generated;
    }
  }
  if (fleet_.lends())
    lending_.generated(generated, now_);
}

void Scheduler::handle(const event::ReferenceScored& e) {
  const Lease* lease = stored_.queue.find(e.lease);
  if (lease == nullptr || lease->actor != e.actor)
    return;
  const std::vector<ResponseId> responses = lease->responses;
  for (const ResponseId r : responses) {
    if (!stored_.queue.holds(e.lease, r))
      continue;
    stored_.queue.commit(e.lease, r, Field::ReferenceLogprobs);
  }
}

void Scheduler::handle(const event::Judged& e) {
  const Lease* lease = stored_.queue.find(e.lease);
  if (lease == nullptr || lease->actor != e.actor)
    return;
  const std::vector<ResponseId> responses = lease->responses;
  for (std::size_t i = 0; i < responses.size() && i < e.items.size(); ++i) {
    if (!stored_.queue.holds(e.lease, responses[i]))
      continue;
    if (e.items[i].failed) {
      stored_.queue.commit(e.lease, responses[i]);
      ++stored_.progress.responses_failed;
      stored_.queue.fail(responses[i]);
      settle_failures(stored_.queue.group_of(responses[i]));
    } else {
      stored_.queue.commit_reward(e.lease, responses[i], e.items[i].reward);
    }
  }
}

/// A group that cannot give an advantage any more leaves; a new one takes its place.
void Scheduler::settle_failures(GroupId group) {
  const std::size_t least = config_.responses_per_group > 1 ? 2 : 1;
  if (stored_.queue.live_responses(group).size() >= least)
    return;
  ++stored_.progress.groups_failed;
  release(group, Outcome::Failed, "too few responses could be judged");
}

void Scheduler::release(GroupId group, Outcome outcome, std::string reason) {
  const Group& g = *stored_.queue.group(group);
  const std::uint64_t first =
      group.value() * static_cast<std::uint64_t>(config_.responses_per_group);
  for (std::size_t k = 0; k < g.rows.size(); ++k) {
    const LeaseId generating = g.rows[k].lease[static_cast<std::size_t>(Task::Generate)];
    if (const Lease* lease = stored_.queue.find(generating)) {
      emit(command::Cancel{lease->actor, ResponseId(first + k)});
      withdrawn_.erase(ResponseId(first + k));
    }
  }
  using Left = Standing::Left;
  stored_.standing.remove(g.dispatched,
                          outcome == Outcome::Trained ? Left::Trained : Left::GivenUp);
  stored_.queue.remove_group(group);
  emit(command::Release{group, outcome, std::move(reason)});
}

void Scheduler::handle(const event::Trained& e) {
  if (!training_ || e.lease != *training_)
    return;
  training_.reset();
  const std::vector<ResponseId> responses = stored_.queue.find(e.lease)->responses;
  std::vector<GroupId> groups;
  for (const ResponseId r : responses) {
    const GroupId g = stored_.queue.group_of(r);
    if (groups.empty() || groups.back() != g)
      groups.push_back(g);
  }
  for (const ResponseId r : responses)
    stored_.queue.commit(e.lease, r);
  stored_.progress.version = next(stored_.progress.version);
  stored_.progress.groups_trained += groups.size();
  for (const GroupId g : groups)
    release(g, Outcome::Trained, "");
  stored_.standing.publish(stored_.progress.version);
}

/// Groups that the policy gives up for their age.
void Scheduler::evict() {
  if (finished_)
    return;
  for (const GroupId g : policy_->evict(stored_.queue, stored_.standing)) {
    ++stored_.progress.groups_evicted;
    release(g, Outcome::Evicted, "too old");
  }
}

void Scheduler::handle(const event::WeightsStaged& e) {
  ActorState& a = fleet_.state(e.actor);
  if (!a.ready() || a.staging != e.version)
    return;
  if (!e.error.empty()) {
    a.staging.reset();  // a newer version is tried at once
    if (e.version == stored_.progress.version)
      lose(e.actor, "could not stage weights: " + e.error);
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
    return lose(e.actor, "refused weights: " + e.error);
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
    return lose(e.actor, fmt::format("{}: {}", name_of(e.action), e.error));
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
    return finish(false, false, fmt::format("checkpoint of step {}: {}", e.version, e.error));
  }
  saved_ = e.version;
  rollbacks_ = 0;
}

void Scheduler::handle(const event::StopRequested&) {
  if (stop_requested_)
    return;
  stop_requested_ = true;
  drain_deadline_ = now_ + config_.deadlines.drain;
}

void Scheduler::finish(bool ok, bool stopped, std::string reason) {
  if (finished_)
    return;
  finished_ = true;
  emit(command::Finish{ok, stopped, std::move(reason)});
}

// --- What follows

void Scheduler::expire() {
  if (finished_)
    return;
  while (const auto late = fleet_.overdue(now_)) {
    lose(late->first, fmt::format("did not {} in time", late->second));
    if (finished_)
      return;
  }
  while (const auto id = stored_.queue.expired(now_)) {
    const Lease lease = *stored_.queue.find(*id);
    constexpr std::array<std::string_view, kTasks> kWhat{
        "generate", "score references", "judge", "train"};
    lose(lease.actor,
         fmt::format("did not {} {} responses in time",
                     kWhat[static_cast<std::size_t>(lease.task)],
                     lease.open));
    if (finished_)
      return;
  }
  if (saving_ && *saving_ <= now_) {
    finish(false,
           false,
           fmt::format("{} did not save a checkpoint in time", fleet_.spec(fleet_.trainer()).name));
  } else if (drain_deadline_ && *drain_deadline_ <= now_) {
    finish(false, true, "stopped on request; the update under way did not end in time");
  }
}

void Scheduler::drive_switch() {
  if (finished_)
    return;
  if (!draining())
    change_turns();
  advance_switch();
}

/// Whose turn it is on shared cards.
void Scheduler::change_turns() {
  using Scoring = RoleSwitch::Scoring;
  switch (switch_.phase()) {
    case SwitchPhase::Train:
      if (training_ || saving_ || select_batch())
        return;
      if (!fleet_.turning_references().empty() && scoring_makes_a_batch())
        return switch_.request_scoring();
      if (!rollout_is_due())
        return;
      lending_.leaves(now_);
      return switch_.request_rollout();
    case SwitchPhase::Rollout: {
      if (!training_is_due())
        return;
      const bool scoring =
          !fleet_.turning_references().empty() && !stored_.queue.ready(Task::Reference).empty();
      lending_.recalled(now_);
      return switch_.request_training(scoring ? Scoring::Needed : Scoring::None);
    }
    case SwitchPhase::Score: {
      const auto& references = fleet_.turning_references();
      const bool busy = std::ranges::any_of(
          references, [this](ActorId a) { return stored_.queue.load(a).leases > 0; });
      if (!busy && stored_.queue.ready(Task::Reference).empty())
        switch_.scored();
      return;
    }
    default:
      return;
  }
}

void Scheduler::advance_switch() {
  const SwitchPhase before = switch_.phase();
  const Status status = switch_.advance(
      fleet_, stored_.progress.version, [this](ActorId a, actors::SwitchAction action) {
        fleet_.state(a).switching = action;
        fleet_.state(a).switch_deadline = now_ + config_.deadlines.switching;
        emit(command::Switch{a, action});
      });
  if (!status)
    return finish(false, false, status.error().context);
  if (switch_.phase() == before)
    return;
  if (switch_.phase() == SwitchPhase::Rollout) {
    lending_.arrives(now_);
    spread_load();
  }
  if (switch_.phase() == SwitchPhase::Train)
    lending_.returns(now_);
}

/// With nothing to train, shared cards generate: always where no other cards do, else if it pays.
bool Scheduler::rollout_is_due() const {
  if (!fleet_.lends())
    return true;
  const std::int64_t batch = std::int64_t{config_.groups_per_update} * config_.responses_per_group;
  const std::int64_t remaining = batch - std::min(batch, stored_.queue.generated());
  return config_.lending == LendingPolicy::Always ? remaining > 0 : lending_.pays(remaining);
}

bool Scheduler::training_is_due() const {
  if (fleet_.lends())
    return select_batch().has_value() || lent_cards_idle();
  return rollout_has_run_dry() && (select_batch() || scoring_makes_a_batch());
}

/// Nothing generates on lent cards, and nothing is on its way to them.
bool Scheduler::lent_cards_idle() const {
  if (!withdrawn_.empty() || !stored_.queue.ready(Task::Generate).empty())
    return false;
  return std::ranges::all_of(fleet_.turning_engines(), [this](ActorId a) {
    return fleet_.state(a).ready() && stored_.queue.load(a).responses == 0;
  });
}

/// Cards have just been lent: the engines that had the work give up what makes all equally full,
/// their youngest responses first, which lose the least.
void Scheduler::spread_load() {
  if (!fleet_.lends())
    return;
  std::int64_t engines = 0;
  auto load = static_cast<std::int64_t>(stored_.queue.ready(Task::Generate).size());
  for (const ActorId id : fleet_.rollouts()) {
    engines += fleet_.state(id).ready() ? 1 : 0;
    load += stored_.queue.load(id).responses;
  }
  if (engines == 0)
    return;
  const std::int64_t fair = (load + engines - 1) / engines;
  for (const ActorId id : fleet_.rollouts()) {
    const std::int64_t over = stored_.queue.load(id).responses - fair;
    if (fleet_.spec(id).takes_turns || over <= 0)
      continue;
    std::vector<ResponseId> theirs = stored_.queue.generating(id);
    theirs.erase(theirs.begin(), theirs.end() - static_cast<std::ptrdiff_t>(over));
    withdrawn_.insert(theirs.begin(), theirs.end());
    emit(command::Withdraw{id, std::move(theirs)});
  }
}

/// References that take turns come to the cards one by one, also those that start meanwhile.
void Scheduler::call_references() {
  if (finished_ || !switch_.allows_reference())
    return;
  for (const ActorId id : fleet_.turning_references()) {
    ActorState& a = fleet_.state(id);
    if (!a.ready() || a.onboard || a.switching)
      continue;
    a.switching = actors::SwitchAction::OnloadReference;
    a.switch_deadline = now_ + config_.deadlines.switching;
    emit(command::Switch{id, actors::SwitchAction::OnloadReference});
  }
}

void Scheduler::publish_weights() {
  if (finished_ || !fleet_.state(fleet_.trainer()).ready())
    return;
  const PolicyVersion published = stored_.progress.version;
  for (const ActorId id : fleet_.rollouts()) {
    ActorState& a = fleet_.state(id);
    if (!a.ready() || a.switching)
      continue;
    const bool turns = fleet_.spec(id).takes_turns;
    if (a.staging && a.staged && !a.committing) {
      // In a role switch all engines stage before any commits; else each for itself.
      if (turns && switch_.phase() == SwitchPhase::Reshard)
        continue;
      a.committing = true;
      a.weights_deadline = now_ + config_.deadlines.weights;
      emit(command::CommitWeights{id, *a.staging});
    } else if (!a.staging && a.version != published && (!turns || switch_.allows_publication())) {
      a.staging = published;
      a.staged = false;
      a.weights_deadline = now_ + config_.deadlines.weights;
      emit(command::StageWeights{id, published});
    } else if (!a.staging && !a.has_kv && a.version == published &&
               (!turns || switch_.allows_kv())) {
      a.switching = actors::SwitchAction::AllocateKv;
      a.switch_deadline = now_ + config_.deadlines.switching;
      emit(command::Switch{id, actors::SwitchAction::AllocateKv});
    }
  }
}

void Scheduler::checkpoint_or_end() {
  if (finished_ || training_ || saving_ || !fleet_.state(fleet_.trainer()).ready())
    return;
  if (fleet_.state(fleet_.trainer()).switching)
    return;
  const PolicyVersion version = stored_.progress.version;
  const bool done = version.value() >= config_.steps;
  const bool due = config_.checkpoint_every > 0 && version.value() > 0 &&
                   version.value() % config_.checkpoint_every == 0;
  if ((done || due || stop_requested_) && saved_ != version) {
    saving_ = now_ + config_.deadlines.checkpoint;
    emit(command::SaveCheckpoint{fleet_.trainer(), version});
  } else if (done) {
    finish(true, false, "");
  } else if (stop_requested_) {
    finish(false, true, "stopped on request");
  }
}

void Scheduler::train() {
  if (finished_ || training_ || saving_ || draining() || !switch_.allows_training())
    return;
  const ActorId trainer = fleet_.trainer();
  if (!fleet_.state(trainer).ready())
    return;
  const auto batch = select_batch();
  if (!batch)
    return;
  command::Train command;
  command.actor = trainer;
  command.certificate.step = stored_.progress.version;
  command.certificate.bound =
      policy_->guarantee(stored_.standing).value_or(std::numeric_limits<std::uint64_t>::max());
  for (const GroupId g : *batch) {
    const PolicyVersion dispatched = stored_.queue.group(g)->dispatched;
    command.certificate.groups.push_back({g, dispatched});
    ++stored_.standing.in_training[dispatched];
    for (const ResponseId r : stored_.queue.live_responses(g))
      command.responses.push_back(r);
  }
  command.lease =
      stored_.queue.lease(Task::Train, trainer, command.responses, now_ + config_.deadlines.train);
  training_ = command.lease;
  emit(std::move(command));
}

std::optional<std::vector<GroupId>> Scheduler::select_batch() const {
  return policy_->select(stored_.queue, stored_.standing);
}

bool Scheduler::scoring_makes_a_batch() const {
  return !fleet_.turning_references().empty() && !stored_.queue.ready(Task::Reference).empty() &&
         policy_->may_train(stored_.queue.judged_by_version(), stored_.standing);
}

void Scheduler::dispatch() {
  if (finished_ || draining())
    return;
  while (dispatch_returned()) {
  }
  while (dispatch_new()) {
  }
}

/// Responses that lost their engine or were interrupted go first, to an engine whose weights are
/// not older than their group's v0, else the group would be staler than its deadline says, nor
/// than those that any of them was sampled with: a version never regresses.
bool Scheduler::dispatch_returned() {
  const auto& ready = stored_.queue.ready(Task::Generate);
  if (ready.empty())
    return false;
  const GroupId group = stored_.queue.group_of(*ready.begin());
  std::vector<ResponseId> responses;
  PolicyVersion newest = stored_.queue.group(group)->dispatched;
  for (const ResponseId r : ready) {
    if (stored_.queue.group_of(r) != group)
      break;
    responses.push_back(r);
    if (const auto& segments = stored_.queue.row(r)->segments; !segments.empty())
      newest = std::max(newest, segments.back().version);
  }
  const auto engine = engine_for(responses.size(), newest);
  if (!engine)
    return false;
  send(*engine, group, std::move(responses));
  return true;
}

bool Scheduler::dispatch_new() {
  if (groups_still_needed() == 0 || !stored_.queue.has_credit())
    return false;
  const auto engine =
      engine_for(static_cast<std::size_t>(config_.responses_per_group), PolicyVersion(0));
  if (!engine)
    return false;
  const PolicyVersion version = *fleet_.state(*engine).version;
  if (!policy_->admits(version, stored_.queue, stored_.standing))
    return false;
  const GroupId group(stored_.next_group++);
  ++stored_.progress.groups_dispatched;
  stored_.queue.add_group(group, version);
  stored_.standing.add(version);
  send(*engine, group, stored_.queue.live_responses(group));
  return true;
}

void Scheduler::send(ActorId engine, GroupId group, std::vector<ResponseId> responses) {
  const PolicyVersion version = *fleet_.state(engine).version;
  const LeaseId lease =
      stored_.queue.lease(Task::Generate, engine, responses, now_ + config_.deadlines.generate);
  emit(command::Dispatch{engine, lease, group, version, std::move(responses)});
}

/// The emptiest engine that has room; newest weights first, so that no deadline is nearer than
/// needed.
std::optional<ActorId> Scheduler::engine_for(std::size_t responses, PolicyVersion at_least) const {
  std::optional<ActorId> best;
  for (const ActorId id : fleet_.rollouts()) {
    const ActorState& a = fleet_.state(id);
    if (!a.ready() || !a.has_kv || a.switching || !a.version || *a.version < at_least)
      continue;
    if (fleet_.spec(id).takes_turns &&
        (!switch_.allows_rollout() || *a.version != stored_.progress.version))
      continue;
    const std::int32_t busy = stored_.queue.load(id).responses;
    if (busy > 0 && busy + static_cast<std::int32_t>(responses) > fleet_.spec(id).concurrency) {
      continue;
    }
    if (!best || *a.version > *fleet_.state(*best).version ||
        (*a.version == *fleet_.state(*best).version &&
         busy < stored_.queue.load(*best).responses)) {
      best = id;
    }
  }
  return best;
}

std::uint64_t Scheduler::groups_still_needed() const {
  const std::uint64_t total = config_.steps * static_cast<std::uint64_t>(config_.groups_per_update);
  const std::uint64_t covered = stored_.progress.groups_trained + stored_.queue.groups().size();
  return total > covered ? total - covered : 0;
}

bool Scheduler::can_admit() const {
  return groups_still_needed() > 0 && stored_.queue.has_credit() &&
         policy_->admits(stored_.progress.version, stored_.queue, stored_.standing);
}

/// Cards on which every engine takes turns leave rollout when nothing new may be dispatched and
/// only a tail is generating.
bool Scheduler::rollout_has_run_dry() const {
  if (can_admit() || !stored_.queue.ready(Task::Generate).empty())
    return false;
  std::int32_t in_flight = 0, slots = 0;
  for (const ActorId id : fleet_.rollouts()) {
    in_flight += stored_.queue.load(id).responses;
    slots += fleet_.spec(id).concurrency;
  }
  return in_flight <= config_.return_share * slots;
}

void Scheduler::score(Task task, actors::RoleKind role, Duration deadline) {
  if (finished_)
    return;
  for (const ActorId id : fleet_.with_role(role)) {
    const auto& ready = stored_.queue.ready(task);
    auto full = static_cast<std::size_t>(config_.score_batch);
    if (fleet_.spec(id).takes_turns) {  // nothing more comes during its turn: its share at once
      const std::size_t all = fleet_.turning_references().size();
      full = std::max(full, (ready.size() + all - 1) / all);
    }
    // One batch at work and at most one behind it; the second only when full, so that batches grow
    // while an actor is busy.
    const auto has_room = [&] {
      const std::int32_t leases = stored_.queue.load(id).leases;
      return leases == 0 || (leases == 1 && ready.size() >= full);
    };
    while (may_score(id) && !ready.empty() && has_room()) {
      std::vector<ResponseId> responses;
      responses.reserve(std::min(full, ready.size()));
      for (auto it = ready.begin(); it != ready.end() && responses.size() < full; ++it) {
        responses.push_back(*it);
      }
      const LeaseId lease = stored_.queue.lease(task, id, responses, now_ + deadline);
      if (task == Task::Reference) {
        emit(command::ScoreReference{id, lease, std::move(responses)});
      } else {
        emit(command::Judge{id, lease, std::move(responses)});
      }
    }
  }
}

bool Scheduler::may_score(ActorId id) const {
  const ActorState& a = fleet_.state(id);
  if (!a.ready() || !fleet_.spec(id).takes_turns)
    return a.ready();
  return a.onboard && !a.switching && switch_.phase() == SwitchPhase::Score;
}

// --- Why is it idle

void Scheduler::update_waits() {
  if (finished_)
    return;
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    ActorState& a = fleet_.state(ActorId(i));
    command::Waiting wait = wait_of(ActorId(i));
    // What a wait is for changes with every response; said once. Idleness has few reasons.
    if (wait.state == a.waiting.state &&
        (wait.state != actors::CardState::Idle || wait.on == a.waiting.on)) {
      continue;
    }
    a.waiting = wait;
    emit(std::move(wait));
  }
}

command::Waiting Scheduler::wait_of(ActorId id) const {
  using S = actors::CardState;
  const ActorState& a = fleet_.state(id);
  const Load load = stored_.queue.load(id);
  const auto because = [id](S state, std::string on) {
    return command::Waiting{id, state, std::move(on)};
  };
  if (!a.ready())
    return because(S::Down, "start");
  if (a.switching)
    return because(S::Switch, std::string(name_of(*a.switching)));
  switch (fleet_.spec(id).role) {
    case actors::RoleKind::Trainer:
      if (training_)
        return because(S::Idle, "");
      if (saving_)
        return because(S::WeightSync, "checkpoint");
      if (draining())
        return because(S::Idle, "end of run");
      return because(S::WaitData,
                     a.waiting.state == S::WaitData ? a.waiting.on : missing_for_training());
    case actors::RoleKind::Rollout:
      if (load.responses > 0)
        return because(S::Idle, "");
      if (groups_still_needed() == 0 || draining())
        return because(S::Idle, "end of run");
      if (fleet_.spec(id).takes_turns && switch_.phase() != SwitchPhase::Rollout)
        return because(S::Switch, std::string(name_of(switch_.phase())));
      if (!a.version || a.staging)
        return because(S::WaitWeights, "weights");
      return because(S::WaitQuota, "staleness bound");
    case actors::RoleKind::Reference:
    case actors::RoleKind::Reward:
      return load.leases > 0 ? because(S::Idle, "") : because(S::WaitData, "responses");
  }
  return because(S::Idle, "");
}

/// The named groups the next update waits for.
std::string Scheduler::missing_for_training() const {
  if (stored_.queue.groups().empty())
    return "responses: none dispatched yet";
  // The earliest deadline that is not ready; by the exact rule it is always among those needed.
  for (const auto& [id, group] : stored_.queue.groups()) {
    if (stored_.queue.trainable().contains({group.dispatched, id}))
      continue;
    return fmt::format("group {} (v0 {}) and others: {} of {} groups ready",
                       id,
                       group.dispatched,
                       stored_.queue.trainable().size(),
                       config_.groups_per_update);
  }
  return "role switch";
}

}  // namespace temper::orchestrator
