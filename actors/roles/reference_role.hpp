// The reference actor scores responses under the initial weights of the run. On time-shared cards
// it starts without an engine: OnloadReference creates the engine and OffloadReference destroys it
// (the weights stay in their file).
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"
#include "actors/roles/activity_log.hpp"
#include "actors/roles/reference_engine.hpp"

#include <functional>
#include <memory>

namespace temper::actors {

class ReferenceRole final : public Role {
 public:
  using MakeEngine = std::function<Result<std::unique_ptr<ReferenceEngine>>()>;

  /// `engine` is null on time-shared cards.
  ReferenceRole(std::unique_ptr<ReferenceEngine> engine, MakeEngine make, const Clock& clock)
      : engine_(std::move(engine)), make_(std::move(make)), activity_(clock) {}

  Status on_message(const IncomingMessage& message, Outbox& out) override;
  Result<Work> work(Outbox& out) override;
  Status stop(Outbox& out) override;
  bool rejoin(const Welcome& welcome) override;

 private:
  Status score(ScoreReference work, Outbox& out);
  void switch_role(const Switch& work, Outbox& out);
  Status perform(SwitchAction action);

  std::unique_ptr<ReferenceEngine> engine_;
  MakeEngine make_;
  ActivityLog activity_;
};

}  // namespace temper::actors
