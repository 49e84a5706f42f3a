// A rollout actor with the torch engine, as a MachineActor: the rules of rollout/rollout_role.cpp
// and rollout/torch/engine.cpp, with times in place of tensors.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/weights.hpp"
#include "study/machine/machine_actor.hpp"

#include <unordered_map>

namespace temper::study {

class MachineRollout final : public MachineActor {
 public:
  MachineRollout(const MachineWorld& world, const orchestrator::ActorSpec& slot);

  Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) override;
  std::optional<MachineTask> next() override;
  std::optional<MachineTask> next_beside() override;

 private:
  struct Response {
    LeaseId lease;
    ResponseId id;
    GroupId group;
    std::int64_t prompt = 0;
    std::int64_t prefix = 0;
    std::int64_t length = 0;  ///< In the end, prefix included.
    std::int64_t made = 0;    ///< By this attempt.
    std::vector<actors::Segment> segments;
    bool outdated = false;  ///< Its cache is of older weights, and is to be computed again.

    std::int64_t cached() const { return prompt + prefix + made - 1; }
  };

  void add(const actors::CountedGenerate& work);
  void remove(const std::vector<ResponseId>& ids, actors::CountedGenerated* report);
  std::optional<MachineTask> step();
  std::optional<MachineTask> prefill();
  std::optional<MachineTask> recompute();
  MachineTask decode();
  void finish_step(actors::Outbox& out);
  MachineTask perform(actors::SwitchAction action);
  MachineTask of_engine(double seconds) const;

  const EngineTimes& times_;
  const MachineTask::Threads threads_;
  const std::size_t slots_;

  std::deque<Response> queue_;
  std::vector<Response> running_;
  std::deque<MachineTask> orders_;  ///< Commits and switches, before the next step.
  PolicyVersion version_;
  std::optional<PolicyVersion> to_stage_, staged_;
  std::size_t untouched_ = 0;  ///< Slots that nothing was in since the cache was allocated.
};

}  // namespace temper::study
