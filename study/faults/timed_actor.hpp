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
  using Word = std::function<void(actors::Outbox&)>;
  struct Due {
    Time at;
    Word word;
  };
  /// Replies once all earlier work is done and this has taken `takes` seconds.
  void then(Time now, double takes, Word word);
  /// Replies after `takes` seconds, regardless of other work.
  void beside(Time now, double takes, Word word) {
    say_at(now + from_seconds(takes), std::move(word));
  }
  void say_at(Time at, Word word);
  double each() const;

  void generate(const actors::CountedGenerate& work, Time now);
  void train(const actors::CountedTrain& work, Time now);
  void hand_back(const std::vector<ResponseId>& responses, actors::Outbox& out);
  void switch_role(const actors::Switch& work, Time now);

  const actors::RoleKind role_;
  PolicyVersion version_;
  const std::shared_ptr<const RunTimes> times_;
  Time free_{};           ///< The time at which all work is done.
  std::vector<Due> due_;  ///< Sorted by time; ties in the order of scheduling.
  std::map<ResponseId, LeaseId> open_;
};

}  // namespace temper::study
