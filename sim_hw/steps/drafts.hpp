// Drafts of a decode step: tokens that are guessed ahead and verified together with the next one.
//
//   step      parallel_decode_seconds() over 1 + depth tokens per sequence, and the drafts
//   draft     depth passes of one layer and the head: the model's own kind of layer (MTP), or a
//             dense one (EAGLE); n-gram look-up costs nothing
//   follow    in a step without drafts, one pass of that layer without the head, which caches the
//             step's tokens, so that a later step can draft
//   tokens    accepted per sequence and step: 1 + p + p^2 + ... + p^depth for an acceptance p of
//             each draft given that the ones before it were accepted
// Assumed: no time of the engine's host; prompts are prefilled without that layer. An adapter is
// not part of an EAGLE draft. Pure functions.
#pragma once

#include "sim_hw/steps/draft.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <cmath>

namespace temper::sim_hw {

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
  if (by == Draft::Eagle)
    m.adapter.reset();
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

/// Seconds of the layer that drafts in a step of this shape that drafts nothing.
inline double follow_seconds(const Device& d,
                             const Fabric& fabric,
                             const StepModel& m,
                             const RolloutLayout& layout,
                             const Drafts& drafts,
                             ReplicaShape shape) {
  if (!drafts.computed())
    return 0;
  double seconds = 0;
  const auto sum = [&](Op op, Pass, double count, double each, OpSizes) {
    seconds += op == Op::Head || op == Op::Sampling ? 0 : count * each;
  };
  visit_parallel_decode(d, fabric, draft_model(m, drafts.by), layout, shape, sum);
  return seconds;
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

/// The same in a step that drafts nothing.
inline LevelBytes followed_traffic(const Fabric& fabric,
                                   const StepModel& m,
                                   const RolloutLayout& layout,
                                   const Drafts& drafts,
                                   double b) {
  LevelBytes out = rollout_traffic(fabric, m, layout, b);
  if (drafts.computed())
    out.add(rollout_traffic(fabric, draft_model(m, drafts.by), layout, b));
  return out;
}

}  // namespace temper::sim_hw
