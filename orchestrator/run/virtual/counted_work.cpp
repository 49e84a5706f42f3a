#include "orchestrator/run/virtual/counted_work.hpp"

#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/actor_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kMostWeights = 8;

using Answer = std::optional<Event>;

}  // namespace

CountedWork::CountedWork(RunCore& core,
                         SimulatedFleet& fleet,
                         std::unique_ptr<ContentSource> content,
                         Tensors tensors,
                         const Log& log)
    : core_(core), fleet_(fleet), content_(std::move(content)), log_(log), tensors_(tensors) {}

void CountedWork::serve() {
  if (content_)
    follow(content_->serve());
}

void CountedWork::follow(const Status& status) {
  if (!status)
    core_.fail("content: " + status.error().context);
}

// --- Commands

void CountedWork::execute(const command::Dispatch& c) {
  actors::CountedGenerate work{c.lease, c.group, {}};
  work.items.reserve(c.responses.size());
  for (std::size_t i = 0; i < c.responses.size(); ++i) {
    auto cached = actors::CachedAt::Nowhere;
    if (!c.cached_on.empty() && c.cached_on[i])
      cached = *c.cached_on[i] == c.actor ? actors::CachedAt::Here : actors::CachedAt::Elsewhere;
    work.items.push_back(
        {c.responses[i], core_.state().table_of(c.lease).row(c.responses[i])->tokens, cached, {}});
    if (const auto call = answered_.extract(c.responses[i]); !call.empty())
      work.items.back().answered = call.mapped();
  }
  if (content_) {
    Sampling sampling{c.lease, c.group, c.version, {}, c.draw};
    for (const auto& item : work.items) {
      if (item.prefix == Tokens(0))
        sampling.responses.push_back(item.response);
    }
    if (!sampling.responses.empty())
      follow(content_->sample(sampling));
  }
  fleet_.send(c.actor, std::move(work));
}

void CountedWork::execute(const command::Cancel& c) {
  fleet_.send(c.actor, actors::Cancel{{c.response}});
}

Tokens CountedWork::length_of(ResponseId r) const {
  const Row& row = *core_.state().saved.queue.row(r);
  return row.prompt + row.tokens;
}

void CountedWork::execute(const command::Withdraw& c) {
  fleet_.send(c.actor, actors::Withdraw{c.responses});
}

void CountedWork::execute(const command::ScoreReference& c) {
  actors::CountedScore work{c.lease, {}, {}};
  work.lengths.reserve(c.responses.size());
  std::optional<GroupId> before;
  for (const ResponseId r : c.responses) {
    work.lengths.push_back(length_of(r));
    const GroupId group = core_.state().saved.queue.group_of(r);
    if (std::exchange(before, group) == group)
      work.repeated += core_.state().saved.queue.row(r)->prompt;
  }
  if (content_)
    follow(content_->score(c.lease, c.responses));
  fleet_.send(c.actor, std::move(work));
}

void CountedWork::execute(const command::Judge& c) {
  actors::CountedJudge work{c.lease, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses)
    work.items.push_back({r, core_.state().table_of(c.lease).row(r)->tokens});
  if (content_)
    follow(content_->judge(c.lease, c.responses));
  fleet_.send(c.actor, std::move(work));
}

void CountedWork::execute(const command::Train& c) {
  actors::CountedTrain work{c.lease, c.certificate, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses)
    work.items.push_back(item_of(r));
  if (content_)
    follow(content_->train(c.lease, c.certificate, c.responses));
  fleet_.send(c.actor, std::move(work));
}

void CountedWork::execute(const command::Prepare& c) {
  actors::CountedPrepare work{c.lease, c.step, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses)
    work.items.push_back(item_of(r));
  fleet_.send(c.actor, std::move(work));
}

actors::CountedTrain::Item CountedWork::item_of(ResponseId r) const {
  const Row& row = *core_.state().saved.queue.row(r);
  return {core_.state().saved.queue.group_of(r), row.prompt, row.tokens, row.reward};
}

void CountedWork::execute(const command::StageWeights& c) {
  const auto handle = weights_.find(c.version);
  if (handle == weights_.end())
    return core_.post(event::WeightsStaged{c.actor, c.version, "the trainer has not published it"});
  actors::WeightsHandle weights = handle->second;
  weights.fd = -1;
  fleet_.send(c.actor, actors::StageWeights{weights});
}

void CountedWork::execute(const command::CommitWeights& c) {
  fleet_.send(c.actor, actors::CommitWeights{c.version});
}

void CountedWork::execute(const command::Switch& c) {
  actors::Switch work{c.action, {}};
  for (const ActorId engine : c.cards_of)
    std::ranges::copy(core_.actor(engine).cards, std::back_inserter(work.cards));
  fleet_.send(c.actor, std::move(work));
}

void CountedWork::execute(const command::SaveCheckpoint& c) {
  if (const auto folder = core_.begin_checkpoint(c.version); !folder)
    return core_.post(event::CheckpointSaved{c.version, folder.error().context});
  fleet_.send(c.trainer, actors::SaveState{c.version, ""});  // a simulated trainer saves no file
}

void CountedWork::execute(const command::Release& c) {
  if (c.outcome != Outcome::Trained)
    log_.warning("group given up", {{"group", c.group}, {"why", core_.text(c.reason)}});
  if (content_)
    content_->release(c.group);
  const ResponseIds& ids = core_.state().saved.queue.ids();
  answered_.erase(answered_.lower_bound(ids.at(c.group, 0)),
                  answered_.lower_bound(ids.at(c.group, ids.per_group())));
  const auto first = holders_.lower_bound(ids.at(c.group, 0));
  const auto end = holders_.lower_bound(ids.at(c.group, ids.per_group()));
  std::map<ActorId, actors::CountedRelease> released;
  for (auto held = first; held != end; ++held)
    released[held->second].responses.push_back(held->first);
  holders_.erase(first, end);
  for (auto& [engine, message] : released) {
    using After = actors::CountedRelease::After;
    message.after = c.outcome == Outcome::Trained ? After::Trained : After::Dropped;
    fleet_.send(engine, std::move(message));
  }
}

std::vector<ResponseId> CountedWork::restore() {
  weights_.clear();
  answered_.clear();
  holders_.clear();
  std::vector<ResponseId> lost;
  if (tensors_ == Tensors::None)
    return lost;
  const DistQueue& queue = core_.state().saved.queue;
  for (const auto& [id, group] : queue.groups()) {
    for (const ResponseId response : queue.live_responses(id)) {
      if (DistQueue::is_generated(*queue.row(response)))
        lost.push_back(response);
    }
  }
  return lost;
}

// --- Answers

event::Generated CountedWork::to_generated(ActorId actor, actors::CountedGenerated message) {
  event::Generated event{actor, {}};
  event.items.reserve(message.items.size());
  actors::CountedRelease late{{}, actors::CountedRelease::After::Dropped};
  for (auto& item : message.items) {
    if (item.answered)
      answered_[item.response] = *item.answered;
    if (tensors_ == Tensors::Held && item.finish != actors::FinishReason::Interrupted) {
      if (core_.state().saved.queue.holds(item.lease, item.response))
        holders_[item.response] = actor;
      else
        late.responses.push_back(item.response);
    }
    event.items.push_back({item.lease,
                           item.response,
                           item.prompt,
                           item.tokens,
                           std::move(item.segments),
                           item.finish,
                           item.cached});
  }
  if (!late.responses.empty())
    fleet_.send(actor, std::move(late));
  return event;
}

Result<std::optional<Event>> CountedWork::to_event(ActorId actor,
                                                   const actors::IncomingMessage& m) {
  if (m.is<actors::Ready>())
    return Answer(event::ActorReady{actor, std::nullopt});
  auto answer = actors::dispatch<Result<Answer>>(
      m,
      [&](actors::CountedGenerated generated) { return to_generated(actor, std::move(generated)); },
      [&](const actors::CountedScored& scored) {
        return event::ReferenceScored{actor, scored.lease};
      },
      [&](const actors::CountedPrepared& prepared) {
        return event::Prepared{actor, prepared.lease};
      },
      [&](actors::Judged judged) { return to_judged(actor, std::move(judged)); },
      [&](actors::Trained trained) { return to_trained(actor, std::move(trained)); },
      [&](const actors::TrainerReady& ready) {
        weights_[ready.weights.version] = ready.weights;
        return event::ActorReady{actor, ready.weights.version};
      },
      [](const actors::Failed& failed) { return invalid_input(failed.reason); });
  if (answer)
    return *std::move(answer);
  TEMPER_TRY(auto plain, plain_event(actor, m));
  if (plain)
    return plain;
  return invalid_input(fmt::format("{} is not for a driver of virtual time",
                                   actors::message_name(m.envelope().tag)));
}

Result<std::optional<Event>> CountedWork::to_judged(ActorId actor, actors::Judged m) {
  if (content_) {
    auto real = content_->judged(m.lease);
    if (!real) {
      follow(real.error());
      return Answer();
    }
    if (real->items.size() != m.items.size()) {
      return invalid_input(fmt::format("{} responses of lease {}, whose content has {}",
                                       m.items.size(),
                                       m.lease,
                                       real->items.size()));
    }
    m.items = std::move(real->items);
    m.gave_up = real->gave_up;
    m.terms = std::move(real->terms);
  }
  event::Judged event{.actor = actor,
                      .lease = m.lease,
                      .items = {},
                      .gave_up = m.gave_up,
                      .terms = std::move(m.terms)};
  event.items.reserve(m.items.size());
  for (const auto& item : m.items) {
    event.items.push_back({item.reward, !item.failure.empty()});
    if (event.failure.empty())
      event.failure = item.failure;
  }
  return Answer(std::move(event));
}

Result<std::optional<Event>> CountedWork::to_trained(ActorId actor, actors::Trained m) {
  if (content_) {
    auto real = content_->trained(m.lease);
    if (!real) {
      follow(real.error());
      return Answer();
    }
    real->tokens = m.metrics.tokens;
    real->micro_batches = m.metrics.micro_batches;
    real->experts = m.metrics.experts;
    m.metrics = *real;
  }
  weights_[m.weights.version] = m.weights;
  if (weights_.size() > kMostWeights)
    weights_.erase(weights_.begin());
  return Answer(event::Trained{actor, m.lease, m.weights.version, std::move(m.groups), m.metrics});
}

}  // namespace temper::orchestrator
