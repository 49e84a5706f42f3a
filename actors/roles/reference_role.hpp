// The reference actor: scores responses under the weights the run started from.
#pragma once

#include "actors/reference_engine.hpp"
#include "actors/roles/activity_log.hpp"

#include <memory>

namespace temper::actors {

class ReferenceRole final : public Role {
 public:
  ReferenceRole(std::unique_ptr<ReferenceEngine> engine, const Clock& clock)
      : engine_(std::move(engine)), activity_(clock) {}

  Status on_message(const IncomingMessage& message, Outbox& out) override;
  Result<Work> work(Outbox& out) override;
  Status stop(Outbox& out) override;

 private:
  std::unique_ptr<ReferenceEngine> engine_;
  ActivityLog activity_;
};

}  // namespace temper::actors
