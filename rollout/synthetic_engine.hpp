// The rollout engine of `policy: synthetic`: responses of one length, as fast as the orchestrator
// can take them. Its tokens are a pattern of the response's id; nothing is computed.
#pragma once

#include "core/clock.hpp"
#include "core/thread_annotations.hpp"
#include "rollout/engine.hpp"

#include <deque>
#include <mutex>

namespace temper::rollout {

struct SyntheticEngineOptions {
  Tokens tokens{256};            ///< Length of every response.
  std::int32_t concurrency = 1;  ///< Responses finished by one step.
  Duration step_time{0};         ///< Wall time of a step; 0: none. Busy-waits on the clock.
};

class SyntheticEngine final : public Engine {
 public:
  SyntheticEngine(const SyntheticEngineOptions& options, const RealClock& clock)
      : options_(options), clock_(clock) {}

  void add(GenerationRequest request) override { queue_.push_back(std::move(request)); }
  Result<StepResult> step() override;
  std::size_t load() const override { return queue_.size(); }
  std::vector<Generation> interrupt() override;
  void cancel(std::span<const ResponseId> ids) override;
  Status stage(PolicyVersion version, std::span<const std::byte> weights) override;
  Status commit(PolicyVersion version) override;
  PolicyVersion version() const override { return version_; }
  Status free_kv() override;
  Status allocate_kv() override;
  Status free_weights() override;
  EngineMemory memory() const override { return memory_; }

 private:
  const SyntheticEngineOptions options_;
  const RealClock clock_;
  std::deque<GenerationRequest> queue_;
  PolicyVersion version_;
  EngineMemory memory_;
  std::mutex staging_;
  std::optional<std::pair<PolicyVersion, Bytes>> staged_ TEMPER_GUARDED_BY(staging_);
};

}  // namespace temper::rollout
