// The reward actor decodes responses and passes them to a verifier.
#pragma once

#include "actors/protocol/work.hpp"
#include "actors/roles/activity_log.hpp"
#include "actors/task/tokenizer.hpp"
#include "actors/task/verifier.hpp"

#include <memory>

namespace temper::actors {

/// The answer to a batch, without its lease.
Judged judge(Verifier& verifier, std::span<const JudgeRequest> batch);

class RewardRole final : public Role {
 public:
  RewardRole(Tokenizer tokenizer, std::unique_ptr<Verifier> verifier, const Clock& clock)
      : tokenizer_(std::move(tokenizer)), verifier_(std::move(verifier)), activity_(clock) {}

  Status on_message(const IncomingMessage& message, Outbox& out) override;
  Result<Work> work(Outbox& out) override;
  Status stop(Outbox& out) override;
  bool rejoin(const Welcome& welcome) override;

 private:
  const Tokenizer tokenizer_;
  std::unique_ptr<Verifier> verifier_;
  ActivityLog activity_;
};

}  // namespace temper::actors
