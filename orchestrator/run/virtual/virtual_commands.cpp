// The driver of virtual time, on what the scheduler commands.
#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace temper::orchestrator {

template <class M>
void VirtualDriver::send(ActorId actor, M message) {
  if (!launched_[actor.value()])
    return;  // its hardware failed at this very time
  address(actor);
  host_->deliver(actor,
                 host_->form() == actors::Outbox::Form::Value
                     ? actors::outgoing_value(std::move(message))
                     : actors::outgoing(message));
}

void VirtualDriver::execute(const command::Launch& c) {
  if (launched_[c.actor.value()])
    return give_up(c.actor, c.reason);
  const Time from =
      hardware_ ? hardware_->hosts.usable_from(scheduler_config_.actors[c.actor.value()].cards)
                : Time{};
  if (from > now_) {
    waits_for_cards_[c.actor] = from;
    return;
  }
  if (Status started = start_actor(c.actor); !started)
    abort(started.error().context);
}

void VirtualDriver::execute(const command::Discard& c) {
  if (launched_[c.actor.value()])
    return give_up(c.actor, c.reason);
  waits_for_cards_.erase(c.actor);  // its hardware failed; it is launched again later
}

void VirtualDriver::give_up(ActorId actor, const std::optional<Reason>& reason) {
  abort(fmt::format("{}: {}; a simulated actor would only do the same again",
                    scheduler_config_.actors[actor.value()].name,
                    text(reason)));
}

void VirtualDriver::execute(const command::Dispatch& c) {
  actors::CountedGenerate work{c.lease, c.group, {}};
  work.items.reserve(c.responses.size());
  for (std::size_t i = 0; i < c.responses.size(); ++i) {
    auto cached = actors::CachedAt::Nowhere;
    if (!c.cached_on.empty() && c.cached_on[i])
      cached = *c.cached_on[i] == c.actor ? actors::CachedAt::Here : actors::CachedAt::Elsewhere;
    work.items.push_back(
        {c.responses[i], scheduler_.table_of(c.lease).row(c.responses[i])->tokens, cached});
  }
  if (content_) {
    Sampling sampling{c.lease, c.group, c.version, {}};
    for (const auto& item : work.items) {
      if (item.prefix == Tokens(0))
        sampling.responses.push_back(item.response);
    }
    if (!sampling.responses.empty())
      follow(content_->sample(sampling));
  }
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::Cancel& c) {
  send(c.actor, actors::Cancel{{c.response}});
}

Tokens VirtualDriver::length_of(ResponseId r) const {
  const Row& row = *scheduler_.queue().row(r);
  return row.prompt + row.tokens;
}

void VirtualDriver::execute(const command::Withdraw& c) {
  send(c.actor, actors::Withdraw{c.responses});
}

void VirtualDriver::execute(const command::ScoreReference& c) {
  actors::CountedScore work{c.lease, {}, {}};
  work.lengths.reserve(c.responses.size());
  std::optional<GroupId> before;
  for (const ResponseId r : c.responses) {
    work.lengths.push_back(length_of(r));
    const GroupId group = scheduler_.queue().group_of(r);
    if (std::exchange(before, group) == group)
      work.repeated += scheduler_.queue().row(r)->prompt;
  }
  if (content_)
    follow(content_->score(c.lease, c.responses));
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::Judge& c) {
  actors::CountedJudge work{c.lease, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses)
    work.items.push_back({r, scheduler_.table_of(c.lease).row(r)->tokens});
  if (content_)
    follow(content_->judge(c.lease, c.responses));
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::Train& c) {
  actors::CountedTrain work{c.lease, c.certificate, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses)
    work.items.push_back(item_of(r));
  if (content_)
    follow(content_->train(c.lease, c.certificate, c.responses));
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::Prepare& c) {
  actors::CountedPrepare work{c.lease, c.step, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses)
    work.items.push_back(item_of(r));
  send(c.actor, std::move(work));
}

actors::CountedTrain::Item VirtualDriver::item_of(ResponseId r) const {
  const Row& row = *scheduler_.queue().row(r);
  return {scheduler_.queue().group_of(r), row.prompt, row.tokens, row.reward};
}

void VirtualDriver::execute(const command::StageWeights& c) {
  const auto handle = weights_.find(c.version);
  if (handle == weights_.end())
    return post(event::WeightsStaged{c.actor, c.version, "the trainer has not published it"});
  actors::WeightsHandle weights = handle->second;
  weights.fd = -1;
  send(c.actor, actors::StageWeights{weights});
}

void VirtualDriver::execute(const command::CommitWeights& c) {
  send(c.actor, actors::CommitWeights{c.version});
}

void VirtualDriver::execute(const command::Switch& c) {
  actors::Switch work{c.action, {}};
  for (const ActorId engine : c.cards_of)
    std::ranges::copy(scheduler_config_.actors[engine.value()].cards,
                      std::back_inserter(work.cards));
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::SaveCheckpoint& c) {
  send(c.trainer, actors::SaveState{c.version, ""});
}

void VirtualDriver::execute(const command::Release& c) {
  if (c.outcome != Outcome::Trained)
    log_.warning("group given up", {{"group", c.group}, {"why", text(c.reason)}});
  if (content_)
    content_->release(c.group);
}

void VirtualDriver::execute(const command::Rollback& c) {
  if (!hardware_)
    return abort(text(c.reason));
  log_.warning("going back to the last checkpoint", {{"why", text(c.reason)}});
  go_back();
}

void VirtualDriver::execute(const command::Finish& c) {
  if (!outcome_)
    outcome_ = RunOutcome{end_of(c, scheduler_config_.actors), now_, 0};
}

}  // namespace temper::orchestrator
