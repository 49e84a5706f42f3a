// Loads of the routed experts on simulated hardware, and what the roles do about them.
#pragma once

#include "core/describe.hpp"

#include <array>
#include <string>

namespace temper {
namespace actors {

enum class ExpertLoadKind { Balanced, Drifting, Trace, Zipf };
enum class ExpertPlacing { Original, Predicted };

struct ExpertConfig {
  ExpertLoadKind loads = ExpertLoadKind::Balanced;
  double spread = 0.5;     ///< drifting: standard deviation of the log of an expert's popularity.
  double drift = 0.02;     ///< drifting, zipf: share of it that a policy version renews.
  std::uint64_t seed = 1;  ///< drifting, zipf
  std::string trace;       ///< trace: CSV file, a row per policy version, used cyclically.
  ExpertPlacing placement = ExpertPlacing::Original;
  double memory = 0.7;         ///< predicted: weight of the past in the prediction.
  double horizon = 10;         ///< predicted: steps that a placement is expected to last.
  double sequence_spread = 0;  ///< Log spread of a load between sequences, without a loss.
  double loss_strength = 0;    ///< Of the trainer's load-balance loss; 0: none.
  double exponent = 0.5;       ///< zipf: load ~ rank^-exponent.

  bool operator==(const ExpertConfig&) const = default;
};
/// What the exchanges of a step add.
void describe_exchanges(auto& v, ExpertConfig& c) {
  v.field(9,
          "sequence_spread",
          c.sequence_spread,
          {.doc = "Standard deviation of the logarithm of an expert's load between sequences, "
                  "around its load in the step, without a load-balance loss. The trainer waits in "
                  "each exchange for the device that is busiest in it.",
           .min = 0.0,
           .max = 5.0});
  v.field(10,
          "loss_strength",
          c.loss_strength,
          {.doc = "Strength of the load-balance loss. One over n sequences divides "
                  "`sequence_spread` by 1 + strength / n; n follows from "
                  "`trainer.mechanisms.balance_loss`.",
           .min = 0.0,
           .max = 1e6});
}
void describe(auto& v, ExpertConfig& c) {
  v.field(
      1,
      "loads",
      c.loads,
      {.doc =
           "`balanced`: all experts get the same tokens; `drifting`: lognormal loads that "
           "change with each policy version; `zipf`: loads in proportion to rank^-exponent, with "
           "ranks that change with each policy version; `trace`: loads from a file."});
  v.field(2,
          "spread",
          c.spread,
          {.doc = "drifting: standard deviation of the logarithm of an expert's load.",
           .min = 0.0,
           .max = 5.0});
  v.field(
      3,
      "drift",
      c.drift,
      {.doc = "drifting, zipf: share of an expert's popularity that a policy version renews; with "
              "`zipf`, the ranks follow it.",
       .min = 0.0,
       .max = 1.0});
  v.field(4, "seed", c.seed, {.doc = "drifting, zipf: seed of the loads."});
  v.field(5,
          "trace",
          c.trace,
          {.doc = "trace: CSV file with a header, a column per expert and a row per policy "
                  "version."});
  v.field(6,
          "placement",
          c.placement,
          {.doc = "`original`: experts stay in order; `predicted`: loads are predicted from their "
                  "history, and experts migrate where that pays. With "
                  "`simulation.rollout.redundant_experts`, `original` places the experts of an "
                  "engine once, by the loads of the first version."});
  v.field(7,
          "memory",
          c.memory,
          {.doc = "predicted: weight of the past in the prediction.", .min = 0.0, .max = 1.0});
  v.field(8,
          "horizon",
          c.horizon,
          {.doc = "predicted: steps over which a migration has to pay.", .min = 0.0});
  describe_exchanges(v, c);
  v.field(11,
          "exponent",
          c.exponent,
          {.doc = "zipf: the expert of rank r gets a load in proportion to r^-exponent.",
           .min = 0.0,
           .max = 5.0});
}

}  // namespace actors

template <>
struct EnumNames<actors::ExpertLoadKind> {
  using E = actors::ExpertLoadKind;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{{{E::Balanced, "balanced"},
                                                                        {E::Drifting, "drifting"},
                                                                        {E::Trace, "trace"},
                                                                        {E::Zipf, "zipf"}}};
};
template <>
struct EnumNames<actors::ExpertPlacing> {
  using E = actors::ExpertPlacing;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::Original, "original"}, {E::Predicted, "predicted"}}};
};

}  // namespace temper
