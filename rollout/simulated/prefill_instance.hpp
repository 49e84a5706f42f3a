// The prefill instance of a simulated engine (simulation.rollout.prefill_cards): time, memory and
// use of a batch that it computes while the other devices of the engine, the decode instance, go on
// decoding.
//
//   compute  the prefill steps of rollout/simulated/engine_cost.hpp, on its own layout
//            (actors::prefill_instance()), until all pieces are done
//   fetch    it keeps no caches between batches: what a piece attends to and what is not computed
//            in the same batch comes from the decode instance, before the first step
//   send     all computed caches move to the decode instance, after the last step
// A transfer of n tokens, the longest sequence having m, takes p2p_seconds() of the bytes that one
// device has of max(m, n / r) tokens, where r is the smaller number of replicas of both instances:
// device i of a replica sends to device i of another, and each port carries one transfer.
// Copies of parked and moved caches go to the decode instance directly, meanwhile.
// Assumptions: no transfer overlaps with computation, so times are upper bounds (systems send layer
// by layer); the engine admits and joins responses between two decode steps; a prompt that is
// pending in the same batch is fetched again by the other responses of its group.
#pragma once

#include "rollout/simulated/engine_cost.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace temper::rollout {

class PrefillInstance {
 public:
  /// Requires: actors::check_rollout(engine); prefill_cards > 0; engine.response_weight divides the
  /// replicas.
  explicit PrefillInstance(const actors::SimulationSettings& engine);
  void use_version(PolicyVersion version) { cost_.use_version(version); }

  struct BatchCost {
    double seconds = 0;  ///< Without copies of parked and moved pieces.
    std::int64_t steps = 0;
    EngineCost::PrefillUse use;
    double cached = 0;  ///< Most bytes of cache on one device, spread evenly over the replicas.
  };
  BatchCost cost(const std::deque<PrefillPiece>& pieces) const;

  /// Begins a batch, which does not end before `least`. Requires: !ends().
  void begin(const std::deque<PrefillPiece>& pieces, Time now, Duration least);
  /// The end of the current batch.
  std::optional<Time> ends() const { return ends_; }
  bool began(Time now) const { return ends_ && began_ == now; }
  /// The current batch is done. Requires: ends().
  const BatchCost& finish();
  /// Forgets the current batch, if any.
  void abort() { ends_.reset(); }
  /// Whether a batch is done since the last call.
  bool take_done() { return std::exchange(done_, false); }

  std::int64_t devices() const { return devices_; }
  /// Tokens of one step.
  std::int64_t step_tokens() const { return cost_.replicas() * prefill_tokens_; }
  /// Tokens of KV cache, of one replica and of all.
  std::int64_t replica_cache() const { return replica_cache_; }
  std::int64_t cache() const { return replica_cache_ * cost_.replicas(); }

 private:
  struct Transfer {
    std::int64_t tokens = 0;
    std::int64_t longest = 0;
    void add(std::int64_t sequence) {
      tokens += sequence;
      longest = std::max(longest, sequence);
    }
  };
  void charge(const Transfer& transfer, BatchCost& cost) const;

  EngineCost cost_;
  sim_hw::Fabric fabric_;
  std::int64_t tp_, devices_;
  std::int64_t distance_;  ///< From a device to its peer of the decode instance.
  std::int64_t links_;     ///< Replicas that can send or receive at once.
  std::int64_t prefill_tokens_, replica_cache_;
  // Mutable state: the current batch.
  std::optional<Time> ends_;
  Time began_{};
  BatchCost batch_;
  bool done_ = false;
};

}  // namespace temper::rollout
