// The rollout engine of `policy: synthetic`: responses of one length, as fast as the orchestrator
// can handle them. Nothing is computed: a token derives from the response id and its position,
// log-probs are constant, and any bytes are accepted as weights. The rest of the contract is that
// of the real engine, so that errors of the orchestrator show with either. Sizes of KV cache and
// weights are small numbers that only tell what is allocated.
#pragma once

#include "core/clock.hpp"
#include "core/thread_annotations.hpp"
#include "rollout/engine.hpp"

#include <deque>
#include <optional>
#include <utility>

namespace temper::rollout {

struct SyntheticEngineOptions {
  Tokens tokens{256};            ///< Length of every response.
  std::int32_t concurrency = 1;  ///< Responses finished per step.
  Duration step_time{0};         ///< Wall time of a step, spent asleep; 0: none.
};

class SyntheticEngine final : public Engine {
 public:
  SyntheticEngine(const SyntheticEngineOptions& options, const RealClock& clock)
      : options_(options), clock_(clock) {
    allocate();
  }

  void add(GenerationRequest request) override { queue_.push_back(std::move(request)); }
  Result<StepResult> step() override;
  std::size_t load() const override { return queue_.size(); }
  std::vector<Generation> interrupt() override;
  std::vector<Generation> withdraw(std::span<const ResponseId> ids) override;
  void cancel(std::span<const ResponseId> ids) override;
  Status stage(PolicyVersion version, std::span<const std::byte> weights) override;
  Status commit(PolicyVersion version) override;
  PolicyVersion version() const override { return version_; }
  bool reset_for_resume() override;
  Status free_kv() override;
  Status allocate_kv() override;
  Status free_weights() override;
  EngineMemory memory() const override;

 private:
  void allocate();
  Generation generate(const GenerationRequest& request) const;

  const SyntheticEngineOptions options_;
  const RealClock clock_;
  std::deque<GenerationRequest> queue_;
  PolicyVersion version_;
  EngineMemory memory_;
  bool has_weights_ = false;
  mutable Mutex staging_;
  std::optional<std::pair<PolicyVersion, Bytes>> staged_ TEMPER_GUARDED_BY(staging_);
};

}  // namespace temper::rollout
