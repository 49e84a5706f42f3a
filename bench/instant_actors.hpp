// Actors that answer every command of a scheduler at once, in order, without processes: for
// benchmarks of the orchestrator alone.
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace temper::orchestrator {

/// Answers every command at once, in order.
class InstantActors {
 public:
  using OnRecord = std::function<void(const Record&)>;
  /// `step`: time between two events.
  InstantActors(Scheduler& scheduler, OnRecord on_record, Duration step = Duration(1))
      : scheduler_(scheduler), on_record_(std::move(on_record)), step_(step) {}
  /// With each answer, every actor reports that it was busy half of the time since its last report.
  void report_spans() { with_spans_ = true; }

  std::uint64_t run(const SchedulerConfig& config) {
    events_.push_back(event::Started{config});
    while (!events_.empty() && !scheduler_.finished()) {
      now_ += step_;
      Record record{sequence_++, now_, std::move(events_.front()), {}};
      events_.pop_front();
      record.commands = scheduler_.on(record.event, record.time);
      for (const Command& c : record.commands)
        std::visit([this](const auto& x) { answer(x); }, c);
      on_record_(record);
    }
    return scheduler_.progress().groups_trained;
  }

 private:
  void answer(const command::Launch& c) {
    const bool trainer = c.actor == scheduler_.fleet().trainer();
    events_.push_back(
        event::ActorReady{c.actor, trainer ? std::optional(PolicyVersion(0)) : std::nullopt});
  }
  void answer(const command::Dispatch& c) {
    busy(c.actor, actors::CardState::Decode);
    event::Generated e{c.actor, {}};
    for (const ResponseId r : c.responses) {
      e.items.push_back({c.lease,
                         r,
                         Tokens(8),
                         Tokens(256),
                         {{c.version, Tokens(256)}},
                         actors::FinishReason::Length});
    }
    events_.push_back(std::move(e));
  }
  void answer(const command::ScoreReference& c) {
    busy(c.actor, actors::CardState::Reference);
    events_.push_back(event::ReferenceScored{c.actor, c.lease});
  }
  void answer(const command::Judge& c) {
    busy(c.actor, actors::CardState::Reward);
    events_.push_back(event::Judged{
        c.actor, c.lease, std::vector<event::Judged::Item>(c.responses.size(), {1.0, false})});
  }
  void answer(const command::Train& c) {
    busy(c.actor, actors::CardState::Train);
    event::Trained e{c.actor, c.lease, next(c.certificate.step), {}, {}};
    for (const auto& entry : c.certificate.groups)
      e.groups.push_back(entry.group);
    events_.push_back(std::move(e));
  }
  void answer(const command::StageWeights& c) {
    events_.push_back(event::WeightsStaged{c.actor, c.version, ""});
  }
  void answer(const command::CommitWeights& c) {
    events_.push_back(event::WeightsCommitted{c.actor, c.version, ""});
  }
  void answer(const command::Switch& c) {
    events_.push_back(event::Switched{c.actor, c.action, {}, ""});
  }
  void answer(const command::SaveCheckpoint& c) {
    events_.push_back(event::CheckpointSaved{c.version, ""});
  }
  template <class C>
  void answer(const C&) {}

  void busy(ActorId actor, actors::CardState state) {
    if (!with_spans_)
      return;
    const Time begin = busy_until_[actor.value()] + (now_ - busy_until_[actor.value()]) / 2;
    events_.push_back(event::Activity{actor, {{state, begin, now_}}});
    busy_until_[actor.value()] = now_;
  }

  Scheduler& scheduler_;
  OnRecord on_record_;
  Duration step_;
  bool with_spans_ = false;
  std::map<std::uint32_t, Time> busy_until_;
  Time now_{};
  std::deque<Event> events_;
  std::uint64_t sequence_ = 0;
};

}  // namespace temper::orchestrator
