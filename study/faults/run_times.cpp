#include "study/faults/run_times.hpp"

#include "orchestrator/scheduler/state/config.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace temper::study {
namespace {

namespace event = orchestrator::event;
namespace command = orchestrator::command;

/// Removes `key` from a map of start times and returns the seconds since its start.
template <class Key>
std::optional<double> ended(std::map<Key, Time>& begun, Key key, Time now) {
  const auto node = begun.extract(key);
  return node.empty() ? std::nullopt : std::optional(seconds(now - node.mapped()));
}

}  // namespace

void RunTimesReader::feed(const orchestrator::Record& record) {
  if (const auto* started = std::get_if<event::Started>(&record.event))
    actors_ = started->config->actors;
  on_event(record);
  for (const orchestrator::Command& c : record.commands)
    on_command(c, record.time);
}

actors::RoleKind RunTimesReader::role_of(ActorId actor) const {
  return actors_.at(actor.value()).role;
}

void RunTimesReader::add_pending(ActorId actor, LeaseId lease, std::size_t responses, Time now) {
  PendingWork& pending = pending_[actor];
  if (pending.responses.empty())
    pending.since = now;
  pending.responses[lease] += static_cast<std::int64_t>(responses);
}

void RunTimesReader::complete(ActorId actor, LeaseId lease, std::int64_t responses, Time now) {
  PendingWork& pending = pending_[actor];
  const auto it = pending.responses.find(lease);
  if (it == pending.responses.end())
    return;
  const std::int64_t done = std::min(responses, it->second);
  response_[role_of(actor)].add(seconds(now - pending.since), static_cast<double>(done));
  pending.since = now;
  if ((it->second -= done) == 0)
    pending.responses.erase(it);
}

void RunTimesReader::on_event(const orchestrator::Record& record) {
  const Time now = record.time;
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  if (const auto* ready = std::get_if<event::ActorReady>(&record.event)) {
    if (const auto took = ended(launched_, ready->actor, now))
      start_[role_of(ready->actor)].add(*took);
  } else if (const auto* generated = std::get_if<event::Generated>(&record.event)) {
    for (const auto& item : generated->items) {
      complete(generated->actor, item.lease, 1, now);
      prompt_.add(static_cast<double>(item.prompt.count()));
      length_.add(static_cast<double>(item.tokens.count()));
    }
  } else if (const auto* scored = std::get_if<event::ReferenceScored>(&record.event)) {
    complete(scored->actor, scored->lease, kAll, now);
  } else if (const auto* judged = std::get_if<event::Judged>(&record.event)) {
    complete(judged->actor, judged->lease, kAll, now);
  } else if (std::holds_alternative<event::Trained>(record.event) && training_) {
    update_.add(seconds(now - *std::exchange(training_, {})));
  } else if (std::holds_alternative<event::CheckpointSaved>(record.event) && saving_) {
    save_.add(seconds(now - *std::exchange(saving_, {})));
  } else if (const auto* staged = std::get_if<event::WeightsStaged>(&record.event)) {
    if (const auto took = ended(staging_, staged->actor, now))
      stage_.add(*took);
  } else if (const auto* committed = std::get_if<event::WeightsCommitted>(&record.event)) {
    if (const auto took = ended(committing_, committed->actor, now))
      commit_.add(*took);
  } else if (const auto* switched = std::get_if<event::Switched>(&record.event)) {
    if (const auto took = ended(switching_, switched->actor, now))
      switch_[switched->action].add(*took);
  }
}

void RunTimesReader::on_command(const orchestrator::Command& any, Time now) {
  if (const auto* launch = std::get_if<command::Launch>(&any))
    launched_[launch->actor] = now;
  else if (const auto* dispatch = std::get_if<command::Dispatch>(&any))
    add_pending(dispatch->actor, dispatch->lease, dispatch->responses.size(), now);
  else if (const auto* score = std::get_if<command::ScoreReference>(&any))
    add_pending(score->actor, score->lease, score->responses.size(), now);
  else if (const auto* judge = std::get_if<command::Judge>(&any))
    add_pending(judge->actor, judge->lease, judge->responses.size(), now);
  else if (std::holds_alternative<command::Train>(any))
    training_ = now;
  else if (std::holds_alternative<command::SaveCheckpoint>(any))
    saving_ = now;
  else if (const auto* stage = std::get_if<command::StageWeights>(&any))
    staging_[stage->actor] = now;
  else if (const auto* commit = std::get_if<command::CommitWeights>(&any))
    committing_[commit->actor] = now;
  else if (const auto* turn = std::get_if<command::Switch>(&any))
    switching_[turn->actor] = now;
}

RunTimes RunTimesReader::times() const {
  RunTimes t;
  for (const auto& [role, mean] : start_)
    t.start[role] = mean.value();
  for (const auto& [role, mean] : response_)
    t.response[role] = mean.value();
  for (const auto& [action, mean] : switch_)
    t.switching[action] = mean.value();
  t.update = update_.value();
  t.save = save_.value();
  t.stage = stage_.value();
  t.commit = commit_.value();
  t.prompt_tokens = prompt_.value();
  t.response_tokens = length_.value();
  return t;
}

}  // namespace temper::study
