// Measures the usage of a simulated actor: model FLOP (sim_hw/model/flops.hpp), bytes per network
// plane, memory high-water marks.
//
// Planes are the levels of the hardware description, innermost first; then, with several clusters,
// the link between them; then the two directions of the host link. Collectives, pipelines and
// offloads are counted at the sending devices, a publication where it is received. Sums are doubles
// and are rounded in reports. Usage is sent with an activity report, at most once per kEvery of
// virtual time, and at the end.
#pragma once

#include "actors/protocol/usage.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/network/collectives.hpp"

#include <optional>

namespace temper::actors {

class UsageMeter {
 public:
  static constexpr Duration kEvery = std::chrono::minutes(5);

  /// `cards`: cards of the actor. `outside`: bandwidth of one device toward other clusters; empty
  /// if there are none.
  UsageMeter(const SimulatedRun& settings,
             std::int64_t cards,
             std::optional<BytesPerSecond> outside = {});

  /// The actor enters a phase in which the ledger predicts this memory.
  void predict(const ActorMemory& memory);

  void add_flops(double flops) { flops_ += flops; }
  /// Adds bytes sent by all devices.
  void add_sent(const sim_hw::LevelBytes& bytes, double times = 1) { sent_.add(bytes, times); }
  /// Adds bytes of messages from another cluster. Requires: there is one.
  void add_crossing(double bytes) { sent_.at[levels() - 1] += bytes; }
  void add_to_host(double bytes) { to_host_ += bytes; }
  void add_from_host(double bytes) { from_host_ += bytes; }
  /// Records bytes held at once by one device and its share of the host.
  void hold(double device, double host);

  /// Work of a rollout engine, reported once it was asked for.
  EngineUse& engine() { return engine_ ? *engine_ : engine_.emplace(); }

  /// Tensors of responses, reported once it was asked for.
  TensorUse& tensors() { return tensors_ ? *tensors_ : tensors_.emplace(); }

  double devices() const { return devices_; }
  /// A report, if the last one is at least kEvery ago.
  std::optional<Usage> due(Time now);
  Usage report(Time now);

 private:
  std::size_t levels() const {
    return planes_.size() - 2;
  }  ///< Number of planes without those of
     ///< the host.

  // Constant.
  double devices_;
  FlopsPerSecond peak_;
  std::vector<PlaneUse> planes_;  ///< Planes with zero bytes.
  double device_capacity_, host_capacity_;
  // Mutable state.
  double flops_ = 0;
  sim_hw::LevelBytes sent_;
  double to_host_ = 0, from_host_ = 0;
  double device_peak_ = 0, host_peak_ = 0;
  double device_predicted_ = 0, host_predicted_ = 0;
  std::optional<EngineUse> engine_;
  std::optional<TensorUse> tensors_;
  Time reported_{};
};

}  // namespace temper::actors
