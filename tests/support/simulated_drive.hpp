// Drives one simulated actor as a driver does, and keeps what it sent with its times.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "core/check.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <utility>
#include <vector>

namespace temper::actors::testing {

class Driven {
 public:
  struct Sent {
    Time at;
    IncomingMessage message;
  };

  explicit Driven(SimulatedActor& actor)
      : actor_(&actor), out_([this](OutgoingMessage m) {
          sent_.push_back({now_, IncomingMessage::from(std::move(m))});
        }) {}
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  Status start() { return actor_->start(now_, out_); }
  /// At the present time, and what is then due at once.
  template <class M>
  Status send(const M& message) {
    TEMPER_TRY_STATUS(actor_->on_message(IncomingMessage::from(outgoing(message)), now_, out_));
    return actor_->advance(now_, out_);
  }
  /// Lets the actor act alone up to and at `until`.
  Status run_until(Time until) {
    for (auto next = actor_->next_event(); next && *next <= until; next = actor_->next_event()) {
      TEMPER_CHECK(*next >= now_, "an actor's next event is not in the past");
      now_ = *next;
      TEMPER_TRY_STATUS(actor_->advance(now_, out_));
    }
    now_ = until;
    return {};
  }
  /// Until it waits to be asked.
  Status run() {
    while (const auto next = actor_->next_event()) {
      TEMPER_TRY_STATUS(run_until(*next));
    }
    return {};
  }

  Time now() const { return now_; }
  const std::vector<Sent>& sent() const { return sent_; }
  /// Every message of one type, with its time.
  template <class M>
  std::vector<std::pair<Time, M>> all() const {
    std::vector<std::pair<Time, M>> out;
    for (const Sent& s : sent_) {
      if (s.message.is<M>())
        out.emplace_back(s.at, s.message.decode<M>().value());
    }
    return out;
  }
  std::vector<Span> spans() const {
    std::vector<Span> out;
    for (const auto& [at, activity] : all<Activity>())
      out.insert(out.end(), activity.spans.begin(), activity.spans.end());
    return out;
  }
  /// Times and bodies of everything, to compare two runs.
  std::string trace() const {
    std::string out;
    for (const Sent& s : sent_) {
      out += std::to_string(s.at.time_since_epoch().count()) + " " +
             message_name(s.message.envelope().tag) + " ";
      out += s.message.body();
    }
    return out;
  }

 private:
  SimulatedActor* actor_;
  Time now_{};
  std::vector<Sent> sent_;
  Outbox out_;
};

/// The model and cluster by name, with 8 + 8 cards.
inline SimulationSettings settings_of(std::string_view cluster, std::string_view model) {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  SimulationSettings s;
  s.cluster = *catalog.hardware(cluster).value();
  s.model = *catalog.model(model).value();
  s.cards = s.trainer_cards = s.rollout_cards = 8;
  s.concurrency = 64;
  s.config.prompt.kind = LengthKind::Constant;
  s.config.prompt.mean = 1024;
  return s;
}

}  // namespace temper::actors::testing
