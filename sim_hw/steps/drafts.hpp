// Drafts of a decode step: tokens that are guessed ahead and verified together with the next one.
//
//   step      parallel_decode_seconds() over 1 + depth tokens per sequence, and the drafts
//   draft     depth passes of one layer and the head: the model's own kind of layer (MTP), or a
//             dense one (EAGLE); n-gram look-up costs nothing
//   tokens    accepted per sequence and step: 1 + p + p^2 + ... + p^depth for an acceptance p of
//             each draft given that the ones before it were accepted
// Assumed: no time of the engine's host. Pure functions.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

enum class Draft { None, Mtp, Eagle, Ngram };

struct Drafts {
  Draft by = Draft::None;
  double depth = 0;  ///< Drafts that a step verifies.

  /// Tokens of each sequence in a step.
  double queries() const { return by == Draft::None ? 1 : 1 + depth; }
  /// Whether layers compute them.
  bool computed() const { return by == Draft::Mtp || by == Draft::Eagle; }
};

/// 1 + p + ... + p^depth.
inline double accepted_tokens(double acceptance, double depth) {
  double sum = 0;
  for (double i = 0; i <= depth; ++i)
    sum += std::pow(acceptance, i);
  return sum;
}

/// The layer that drafts one token. Requires: computed drafts.
inline StepModel draft_model(StepModel m, Draft by) {
  const bool experts = by == Draft::Mtp && m.moe_layers > 0;
  m.layers = 1;
  m.moe_layers = experts ? 1 : 0;
  m.dense_layers = experts ? 0 : 1;
  return m;
}

/// Seconds of the drafts of a step of this shape.
inline double draft_seconds(const Device& d,
                            const Fabric& fabric,
                            const StepModel& m,
                            const RolloutLayout& layout,
                            const Drafts& drafts,
                            ReplicaShape shape) {
  if (!drafts.computed())
    return 0;
  shape.queries = 1;
  return drafts.depth *
         parallel_decode_seconds(d, fabric, draft_model(m, drafts.by), layout, shape);
}

/// Bytes that each device sends in a step of `b` sequences per replica, drafts included.
inline LevelBytes drafted_traffic(const Fabric& fabric,
                                  const StepModel& m,
                                  const RolloutLayout& layout,
                                  const Drafts& drafts,
                                  double b) {
  LevelBytes out = rollout_traffic(fabric, m, layout, b * drafts.queries());
  if (drafts.computed() && drafts.depth > 0)
    out.add(rollout_traffic(fabric, draft_model(m, drafts.by), layout, b), drafts.depth);
  return out;
}

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Draft> {
  using E = temper::sim_hw::Draft;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::None, "none"}, {E::Mtp, "mtp"}, {E::Eagle, "eagle"}, {E::Ngram, "ngram"}}};
};
