// An actor of a local run in virtual time, known only by its mean times (run_times.hpp): it handles
// one command after the other, each in its mean time. Staging and committing weights run
// concurrently.
#pragma once

#include "actors/protocol/catalog.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "study/faults/run_times.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace temper::study {

class TimedActor final : public actors::SimulatedActor {
 public:
  TimedActor(const actors::RoleConfig& role, std::shared_ptr<const RunTimes> times)
      : role_(role.kind), version_(role.version), times_(std::move(times)) {}

  Status start(Time now, actors::Outbox& out) override;
  Status on_message(const actors::IncomingMessage& message, Time now, actors::Outbox& out) override;
  Status advance(Time now, actors::Outbox& out) override;
  std::optional<Time> next_event() const override;

 private:
  using Reply = std::function<void(actors::Outbox&)>;
  struct ScheduledReply {
    Time at;
    Reply reply;
  };
  /// Replies once all earlier work is done and this has taken `takes` seconds.
  void reply_after_work(Time now, double takes, Reply reply);
  /// Replies after `takes` seconds, regardless of other work.
  void reply_after(Time now, double takes, Reply reply) {
    schedule_reply(now + from_seconds(takes), std::move(reply));
  }
  void schedule_reply(Time at, Reply reply);
  double response_seconds() const;

  void generate(const actors::CountedGenerate& work, Time now);
  void train(const actors::CountedTrain& work, Time now);
  void hand_back(const std::vector<ResponseId>& responses, actors::Outbox& out);
  void switch_role(const actors::Switch& work, Time now);

  const actors::RoleKind role_;
  PolicyVersion version_;
  const std::shared_ptr<const RunTimes> times_;
  Time free_{};                      ///< The time at which all work is done.
  std::vector<ScheduledReply> due_;  ///< Sorted by time; ties in the order of scheduling.
  std::map<ResponseId, LeaseId> open_;
};

}  // namespace temper::study
