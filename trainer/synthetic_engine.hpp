// The trainer engine of `policy: synthetic`: counts tokens and steps, and computes nothing. Its
// weights are a line of text and padding, not a safetensors image; only synthetic rollout engines
// accept them. Its state on disk is synthetic.json, {"updates": n}.
#pragma once

#include "core/clock.hpp"
#include "trainer/engine.hpp"

namespace temper::trainer {

class SyntheticEngine final : public Engine {
 public:
  /// `step_time`: wall time of one step, spent asleep; 0: none. `least`: size of the weights,
  /// unless the line is longer.
  SyntheticEngine(Duration step_time, Bytes least, const RealClock& clock)
      : step_time_(step_time), least_(least), clock_(clock) {}

  /// There is nothing to compute; the step takes its time as always.
  Status prepare(std::span<const TrainSample>) override { return {}; }
  Result<UpdateMetrics> update(std::span<const TrainSample> batch) override;
  Status publish(const ImageWriter& write) const override;
  Status save(const std::filesystem::path& folder) const override;
  Status load(const std::filesystem::path& folder) override;
  Status offload() override;
  Status onload() override;
  TrainerMemory memory() const override { return memory_; }

 private:
  const Duration step_time_;
  const Bytes least_;
  const RealClock clock_;
  std::uint64_t updates_ = 0;
  bool offloaded_ = false;
  TrainerMemory memory_{Bytes(1), Bytes(0), Bytes(2), Bytes(0)};
};

}  // namespace temper::trainer
