#include "tests/orchestrator/run/virtual/wait_oracle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator::testing {
namespace {

using actors::RoleKind;
constexpr std::size_t kMostMismatches = 10;

}  // namespace

void WaitOracle::feed(const Record& record) {
  current_ = record.sequence;
  for (const auto& [id, open] : open_) {
    Idle& idle = idle_[{actors_[id].role, open.said}];
    idle.all += record.time - last_;
    idle.wrong += open.wrong ? record.time - last_ : Duration{};
  }
  last_ = record.time;
  std::visit([this](const auto& e) { on(e); }, record.event);
  for (const Command& command : record.commands)
    std::visit([this](const auto& c) { does(c); }, command);
  compare();
}

// --- What happens

void WaitOracle::on(const event::Started& e) {
  config_ = *e.config;
  for (const ActorSpec& spec : config_.actors) {
    Actor& a = actors_.emplace_back();
    a.role = spec.role;
    a.shared = spec.takes_turns;
    a.onboard = !spec.takes_turns;
    a.away = spec.takes_turns && spec.role == RoleKind::Rollout;  // The trainer begins.
  }
}

WaitOracle::Response* WaitOracle::response(std::uint64_t id) {
  const auto it = groups_.find(id / static_cast<std::uint64_t>(config_.responses_per_group));
  if (it == groups_.end())
    return nullptr;
  const auto found = it->second.responses.find(id);
  return found == it->second.responses.end() ? nullptr : &found->second;
}

void WaitOracle::on(const event::Generated& e) {
  using F = actors::FinishReason;
  for (const auto& item : e.items) {
    Response* r = response(item.response.value());
    if (r == nullptr || r->stage != Stage::Generating || r->engine != e.actor.value())
      continue;
    r->stage = item.finish == F::Interrupted ? Stage::Queued
               : item.finish == F::Failed    ? Stage::Failed
                                             : Stage::Generated;
  }
}

void WaitOracle::on(const event::ReferenceScored& e) {
  for (const std::uint64_t id : leases_[e.lease.value()].responses) {
    if (Response* r = response(id); r != nullptr && r->scoring == e.lease.value()) {
      r->scored = true;
      r->scoring = 0;
    }
  }
  leases_.erase(e.lease.value());
}

void WaitOracle::on(const event::Judged& e) {
  for (const std::uint64_t id : leases_[e.lease.value()].responses) {
    if (Response* r = response(id); r != nullptr && r->judging == e.lease.value()) {
      r->judged = true;
      r->judging = 0;
    }
  }
  leases_.erase(e.lease.value());
}

void WaitOracle::on(const event::Trained& e) {
  version_ = e.version.value();
  training_ = false;
  trained_ += e.groups.size();
  for (const GroupId group : e.groups)
    groups_.erase(group.value());
}

void WaitOracle::on(const event::WeightsCommitted& e) {
  actors_[e.actor.value()].staging = false;
  if (e.error.empty())
    actors_[e.actor.value()].version = e.version.value();
}

void WaitOracle::on(const event::Switched& e) {
  using A = actors::SwitchAction;
  Actor& a = actors_[e.actor.value()];
  a.switching = false;
  if (!e.error.empty())
    return;
  if (e.action == A::FreeWeights)
    a.version.reset();
  if (e.action == A::AllocateKv || e.action == A::FreeKv)
    a.kv = e.action == A::AllocateKv;
  if (e.action == A::OnloadReference || e.action == A::OffloadReference)
    a.onboard = e.action == A::OnloadReference;
  // The engines of a turn come back together.
  const bool all = std::ranges::all_of(actors_, [](const Actor& x) { return !x.away || x.kv; });
  if (e.action == A::AllocateKv && all) {
    for (Actor& x : actors_)
      x.away = false;
  }
}

// --- Commands

void WaitOracle::does(const command::Dispatch& c) {
  const auto [it, fresh] = groups_.try_emplace(c.group.value());
  if (fresh)
    it->second.v0 = c.version.value();
  for (const ResponseId id : c.responses) {
    Response& r = it->second.responses[id.value()];
    r.stage = Stage::Generating;
    r.engine = c.actor.value();
  }
}

void WaitOracle::does(const command::ScoreReference& c) {
  Lease& lease = leases_[c.lease.value()];
  lease.actor = c.actor.value();
  for (const ResponseId id : c.responses) {
    lease.responses.push_back(id.value());
    if (Response* r = response(id.value()))
      r->scoring = c.lease.value();
  }
}

void WaitOracle::does(const command::Judge& c) {
  Lease& lease = leases_[c.lease.value()];
  lease.actor = c.actor.value();
  for (const ResponseId id : c.responses) {
    lease.responses.push_back(id.value());
    if (Response* r = response(id.value()))
      r->judging = c.lease.value();
  }
}

void WaitOracle::does(const command::Train& c) {
  training_ = true;
  for (const auto& entry : c.certificate.groups) {
    groups_[entry.group.value()].training = true;
    groups_[entry.group.value()].promised = false;
  }
}

void WaitOracle::does(const command::Prepare& c) {
  preparing_ = true;
  for (const ResponseId id : c.responses)
    groups_[id.value() / static_cast<std::uint64_t>(config_.responses_per_group)].promised = true;
}

void WaitOracle::does(const command::Switch& c) {
  Actor& a = actors_[c.actor.value()];
  a.switching = true;
  if (c.action == actors::SwitchAction::Interrupt)
    a.away = true;
}

// --- What follows

bool WaitOracle::scores() const {
  return std::ranges::any_of(actors_, [](const Actor& a) { return a.role == RoleKind::Reference; });
}

bool WaitOracle::ready(const OutstandingGroup& group, bool scores) {
  return std::ranges::all_of(group.responses, [&](const auto& entry) {
    const Response& r = entry.second;
    return r.stage == Stage::Failed ||
           (r.stage == Stage::Generated && r.judged && (r.scored || !scores));
  });
}

bool WaitOracle::feasible(std::vector<std::uint64_t> deadlines, std::uint64_t step) const {
  std::ranges::sort(deadlines);
  const auto batch = static_cast<std::uint64_t>(config_.groups_per_update);
  for (std::size_t i = 0; i < deadlines.size(); ++i) {
    const bool last = i + 1 == deadlines.size() || deadlines[i + 1] != deadlines[i];
    if (last && (deadlines[i] < step || i + 1 > (deadlines[i] - step + 1) * batch))
      return false;
  }
  return true;
}

bool WaitOracle::admits_another() const {
  std::vector<std::uint64_t> deadlines{version_ + config_.staleness_bound};
  for (const auto& [id, group] : groups_)
    deadlines.push_back(group.training ? version_ : group.v0 + config_.staleness_bound);
  return feasible(std::move(deadlines), version_);
}

/// B ready groups, earliest deadlines first, without which (I) holds at the next step. Promised
/// ones are among them.
bool WaitOracle::batch_is_complete() const {
  const bool needs_scores = scores();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> candidates;
  std::vector<std::uint64_t> rest;
  std::uint64_t left = static_cast<std::uint64_t>(config_.groups_per_update);
  for (const auto& [id, group] : groups_) {
    if (group.training)
      continue;
    if (group.promised)
      --left;
    else if (ready(group, needs_scores))
      candidates.emplace_back(group.v0, id);
    else
      rest.push_back(group.v0 + config_.staleness_bound);
  }
  if (candidates.size() < left)
    return false;
  std::ranges::sort(candidates);
  for (std::size_t i = left; i < candidates.size(); ++i)
    rest.push_back(candidates[i].first + config_.staleness_bound);
  return feasible(std::move(rest), version_ + 1);
}

void WaitOracle::count(Census& out) const {
  const bool needs_scores = scores();
  for (const auto& [id, group] : groups_) {
    if (!group.training && !group.promised && !ready(group, needs_scores))
      ++out.unready;
    for (const auto& [response, r] : group.responses) {
      out.queued += r.stage == Stage::Queued ? 1 : 0;
      if (r.stage == Stage::Generating) {
        ++out.generating;
        ++out.busy[r.engine];
      }
      const bool generated = r.stage == Stage::Generated;
      out.to_score += generated && needs_scores && !r.scored && r.scoring == 0 ? 1 : 0;
      out.to_judge += generated && !r.judged && r.judging == 0 ? 1 : 0;
    }
  }
  for (const auto& [id, lease] : leases_)
    ++out.busy[lease.actor];
}

WaitOracle::Census WaitOracle::census() const {
  Census out;
  out.busy.resize(actors_.size());
  count(out);
  const std::uint64_t all = config_.steps * static_cast<std::uint64_t>(config_.groups_per_update);
  const std::uint64_t covered = trained_ + groups_.size();
  out.needed = all > covered ? all - covered : 0;
  out.admits = out.needed > 0 && admits_another();
  out.complete = batch_is_complete();
  for (const Actor& a : actors_) {
    if (a.role != RoleKind::Rollout)
      continue;
    out.away = out.away || a.away;
    out.able = out.able || (!a.away && a.kv && !a.switching && !a.staging && a.version == version_);
  }
  return out;
}

// --- The cause

WaitKind WaitOracle::of_engine(const Actor& a, const Census& c) const {
  if (c.needed == 0 && c.queued == 0)
    return WaitKind::EndOfRun;
  if (a.away)
    return WaitKind::RoleSwitch;
  if (!a.version || a.staging || ((c.queued > 0 || c.admits) && a.version != version_))
    return WaitKind::Weights;
  return c.admits ? WaitKind::TrainerDemand : WaitKind::StalenessBound;
}

WaitKind WaitOracle::of_scorer(const Census& c) const {
  if (c.queued > 0 && c.away)
    return WaitKind::SharedCards;
  if (c.generating > 0)
    return WaitKind::Responses;
  if (c.needed == 0 && c.queued == 0)
    return WaitKind::EndOfRun;
  if (c.queued == 0 && !c.admits)
    return WaitKind::StalenessBound;
  if (c.able)
    return WaitKind::TrainerDemand;
  return c.away ? WaitKind::SharedCards : WaitKind::Weights;
}

std::optional<WaitKind> WaitOracle::expected(std::uint32_t id, const Census& c) const {
  const Actor& a = actors_[id];
  if (!a.up || c.busy[id] > 0)
    return std::nullopt;
  if (a.switching)
    return WaitKind::RoleSwitch;
  if (a.role == RoleKind::Trainer && saving_)
    return WaitKind::Checkpoint;
  if (version_ >= config_.steps)
    return WaitKind::EndOfRun;
  switch (a.role) {
    case RoleKind::Rollout:
      return of_engine(a, c);
    case RoleKind::Reference:
      return c.to_score > 0 ? WaitKind::SharedCards : of_scorer(c);
    case RoleKind::Reward:
      return of_scorer(c);
    case RoleKind::Trainer:
      break;
  }
  if (training_ || preparing_)
    return std::nullopt;
  if (c.complete)
    return WaitKind::RoleSwitch;
  return c.unready > 0 ? WaitKind::Groups : WaitKind::Dispatch;
}

void WaitOracle::compare() {
  open_.clear();
  if (finished_)
    return;
  const Census c = census();
  for (std::uint32_t id = 0; id < actors_.size(); ++id) {
    const auto kind = expected(id, c);
    const auto& said = actors_[id].said;
    if (!kind || !said)
      continue;
    ++intervals_;
    const bool wrong = said->cause.kind != *kind;
    open_[id] = {said->cause.kind, wrong};
    if (wrong && mismatches_.size() < kMostMismatches)
      mismatches_.push_back(fmt::format("record {}: {} waits for {}, expected {}",
                                        current_,
                                        config_.actors[id].name,
                                        name_of(said->cause.kind),
                                        name_of(*kind)));
  }
}

}  // namespace temper::orchestrator::testing
