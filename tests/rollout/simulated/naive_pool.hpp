// The prefill devices of a naive engine: written from the rules in rollout/simulated/batch.hpp and
// prefill_instance.hpp.
#pragma once

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "rollout/simulated/engine_cost.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace temper::rollout {

class NaivePool {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// Of this engine.
  explicit NaivePool(const actors::SimulationSettings& s)
      : settings_(actors::prefill_instance(s)),
        decode_(s),
        cost_(settings_),
        fabric_(sim_hw::make_fabric(s.cluster)),
        decode_devices_((s.cards - settings_.cards) * s.cluster.dies_per_card) {}

  double ends = kNever;    ///< Of the current batch.
  std::int64_t steps = 0;  ///< Its prefill steps.

  void begin(const std::deque<PrefillPiece>& pieces, double now) {
    const auto [seconds, passes] = compute(pieces);
    std::deque<PrefillPiece> copied = pieces;
    std::erase_if(copied, [](const PrefillPiece& p) { return !p.parked; });
    ends = now + std::max(seconds, decode_.prefill(copied, 0));
    steps = passes;
  }

  /// Whether these fit in the current batch.
  bool takes(const std::deque<PrefillPiece>& batch, const std::deque<PrefillPiece>& more) const {
    const auto [computed, cached] = sizes(batch);
    const auto [more_computed, more_cached] = sizes(more);
    const std::int64_t replicas = cost_.replicas();
    const std::int64_t replica_cache = actors::kv_tokens(settings_).count();
    return computed == 0 || more_computed == 0 ||
           (computed + more_computed <= settings_.config.rollout.prefill_tokens * replicas &&
            cached + more_cached <= replica_cache * replicas);
  }

  bool copying_pays(PrefillPiece piece) const {
    const double copied = decode_.prefill({piece}, 0);
    piece.parked = false;
    piece.cached = piece.offset;
    return copied < compute({piece}).first;
  }

 private:
  double transfer(std::int64_t tokens, std::int64_t longest) const {
    if (tokens == 0)
      return 0;
    const std::int64_t tp = settings_.config.rollout.tp;
    const std::int64_t links = std::min(cost_.replicas(), decode_devices_ / tp);
    const auto each = static_cast<double>(std::max(longest, (tokens + links - 1) / links));
    return sim_hw::p2p_seconds(fabric_, decode_devices_, each * actors::kv_token_bytes(settings_));
  }
  /// Seconds and steps of the pieces that are not copied.
  std::pair<double, std::int64_t> compute(const std::deque<PrefillPiece>& pieces) const {
    std::deque<PrefillPiece> left;
    std::int64_t in = 0, most_in = 0, out = 0, most_out = 0;
    for (const PrefillPiece& p : pieces) {
      if (p.parked)
        continue;
      left.push_back(p);
      in += p.cached;
      most_in = std::max(most_in, p.cached);
      out += p.tokens;
      most_out = std::max(most_out, p.tokens);
    }
    std::pair<double, std::int64_t> sum{transfer(in, most_in) + transfer(out, most_out), 0};
    for (; !left.empty(); ++sum.second) {
      sum.first += cost_.prefill(left, 0);
      cost_.finish_prefill(left);
    }
    return sum;
  }
  /// Tokens that are computed with these pieces, and those in the cache meanwhile.
  static std::pair<std::int64_t, std::int64_t> sizes(const std::deque<PrefillPiece>& pieces) {
    std::pair<std::int64_t, std::int64_t> out;
    for (const PrefillPiece& p : pieces) {
      out.first += p.parked ? 0 : p.tokens;
      out.second += p.parked ? 0 : p.tokens + p.cached;
    }
    return out;
  }

  actors::SimulationSettings settings_;
  EngineCost decode_, cost_;
  sim_hw::Fabric fabric_;
  std::int64_t decode_devices_;
};

}  // namespace temper::rollout
