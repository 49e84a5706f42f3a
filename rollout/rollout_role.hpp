// The rollout actor: generates responses, stages weights meanwhile, and commits them between two
// steps. It handles messages in order: a response dispatched before a commit may begin under the
// older weights, one dispatched after it never does.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"
#include "actors/roles/activity_log.hpp"
#include "actors/shared_memory/chunks.hpp"
#include "rollout/engine.hpp"

#include <future>
#include <map>
#include <memory>

namespace temper::rollout {

class RolloutRole final : public actors::Role {
 public:
  RolloutRole(std::unique_ptr<Engine> engine, const Clock& clock)
      : engine_(std::move(engine)), activity_(clock) {}

  Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) override;
  Result<Work> work(actors::Outbox& out) override;
  Status stop(actors::Outbox& out) override;
  bool rejoin(const actors::Welcome& welcome) override;

 private:
  void generate(actors::Generate work);
  void cancel(const actors::Cancel& work);
  void stage(const actors::WeightsHandle& handle, actors::Outbox& out);
  void add_chunk(const actors::WeightsChunk& chunk, actors::Outbox& out);
  void stage_in_background(PolicyVersion version, std::function<Status()> load);
  void report_staged(actors::Outbox& out);
  void commit(const actors::CommitWeights& work, actors::Outbox& out);
  void switch_role(const actors::Switch& work, actors::Outbox& out);
  Status perform(actors::SwitchAction action, actors::Outbox& out);
  void send(std::vector<Generation> generations, actors::Outbox& out);

  std::unique_ptr<Engine> engine_;
  actors::ActivityLog activity_;
  std::map<ResponseId, LeaseId> leases_;
  std::optional<actors::ChunkAssembler> chunks_;
  PolicyVersion staging_version_;
  std::future<Status> staging_;  ///< Valid while weights are being staged.
};

}  // namespace temper::rollout
