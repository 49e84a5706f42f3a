// Counts what a simulated actor uses: model FLOP (sim_hw/model/flops.hpp), bytes per network plane,
// memory high-water marks.
//
// Planes are the levels of the hardware's description, innermost first, where roles are in several
// clusters the link between these, then the two directions of the link to the host. Collectives,
// pipelines and offload count at their devices; a publication counts where it is received. Sums are
// kept as doubles and rounded when they are reported. Reports go out with an activity report, at
// most once per kEvery of virtual time, and at the end.
#pragma once

#include "actors/protocol/usage.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/network/collectives.hpp"

#include <optional>

namespace temper::actors {

class UsageMeter {
 public:
  static constexpr Duration kEvery = std::chrono::minutes(5);

  /// Counts for an actor on `cards` cards.
  /// `outside`: of one device towards other clusters; none: there are no others.
  UsageMeter(const SimulatedRun& settings,
             std::int64_t cards,
             std::optional<BytesPerSecond> outside = {});

  /// What the ledger says it holds at most.
  void predict(const ActorMemory& memory);

  void add_flops(double flops) { flops_ += flops; }
  /// Bytes of all devices.
  void add_sent(const sim_hw::LevelBytes& bytes, double times = 1) { sent_.add(bytes, times); }
  /// Bytes of messages that came from another cluster. Requires: there is one.
  void add_crossing(double bytes) { sent_.at[levels() - 1] += bytes; }
  void add_to_host(double bytes) { to_host_ += bytes; }
  void add_from_host(double bytes) { from_host_ += bytes; }
  /// Bytes of one device and of its share of the host, held at once.
  void hold(double device, double host);

  double devices() const { return devices_; }
  /// If the last one is kEvery ago.
  std::optional<Usage> due(Time now);
  Usage report(Time now);

 private:
  std::size_t levels() const { return planes_.size() - 2; }  ///< Without the host's.

  // Constant after predict().
  double devices_;
  FlopsPerSecond peak_;
  std::vector<PlaneUse> planes_;  ///< Without bytes.
  ActorMemory predicted_;
  double device_capacity_, host_capacity_;
  // Mutable state.
  double flops_ = 0;
  sim_hw::LevelBytes sent_;
  double to_host_ = 0, from_host_ = 0;
  double device_peak_ = 0, host_peak_ = 0;
  Time reported_{};
};

}  // namespace temper::actors
