// What an RL run on simulated hardware settles to, in closed form: microseconds where the run
// itself takes a second. Made to rank the points of a search (explore/tune.hpp); the run decides.
//
// Notation. B groups of G responses per update, eta the bound, R replicas of attention over all
// engines, tau(b, c) the decode step of b responses of mean context c on each replica, S(x) the
// share of responses longer than x tokens, L the longest of a batch, U the update, V publication, F
// the prefill of a batch and taking over weights, A the reference's pass over a batch, Q from a
// group's last response to its last score. P: seconds per update, the least that satisfies
//
//   own cards, eta >= 1   Each publication admits B groups at once. Let K be the tokens that a
//     response gets per period: at phase y a replica runs b(y) = (B G / R) sum_j S(y + j K), so
//       P(K) = integral_0^K tau(b(y)) dy + F,   T(K) = floor(L / K) P + the rest of L: the longest
//       P >= U,  P >= A,  (eta + 1) P >= T(K) + Q + U + V
//     the last since its group must be trained as version v0 + eta is updated (policy exact).
//     Where some b(y) exceeds the slots or the cache, they are full all the time instead:
//       P >= (B G mean / R) tau(full) / full + F,   T = L tau(full) + F
//   own cards, eta = 0    P = D(B G / R) + F + 1.5 q + max(0, A - D) + U + V
//     where D(n) is the time until the last of n responses per replica ends, those beyond the slots
//     after others, and q scores one group: half a pass under way is waited for
//   hybrid                the same with the engines that the trainer lends for its idle share
//   turns                 a turn admits k batches and generates until return_share of the slots is
//     left. With bursts of k batches its K is the least with k (B G / R) sum_(j>0) S(j K) <= left,
//     and at least L k / (eta + 1), for no answer may need more turns; k is the largest number of
//     batches of which all are whole by then, of eta + 1 that are outstanding:
//       P = (integral_0^K tau + k F + switches) / k + U (+ A if the reference takes its turn too)
//     Where slots or cache are full at first, all tokens of k batches at full slots, then the rest
// Mean staleness, which no part of the scheduler or the simulation enters (tests and docs/tune.md
// hold them against each other): what is outstanding is B per version for eta + 1 versions where
// admission limits it, so that a batch is eta old; k batches of a turn are eta - (k - 1) / 2 old on
// average; where slots limit, a response is out slots P / (B G / R) by Little's law, its group the
// difference of E[longest of G] and the mean longer, then Q + P / 2, in which
// (D - (P - U - V)) / P + 1 / 2 versions appear, eta at most.
//
// Assumed: policy exact (others are judged as if they were); lengths as the first batch of the run
// draws them; no preemption; lending starts and ends in no time but its switch.
// Constants: those of the hardware. Doubles are seconds and tokens.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <memory>

namespace temper::study {

/// What an update waits for in the end.
enum class Pace { orchestrator::Update, Reference, LongAnswers, Slots, orchestrator::Turns };

struct SteadyState {
  double seconds_per_update = 0;
  double trained_per_s = 0;  ///< Tokens of prompts and responses.
  double staleness_mean = 0;
  Pace pace = Pace::Update;
};

/// Remembers the costs of layouts that it has met. One thread.
class SteadyStateModel {
 public:
  /// `settings`: resolve_simulation() of a configuration.
  explicit SteadyStateModel(actors::SimulationSettings settings);
  ~SteadyStateModel();
  SteadyStateModel(SteadyStateModel&&) noexcept;
  SteadyStateModel& operator=(SteadyStateModel&&) noexcept;

  /// Requires: a configuration whose rules hold (explore/evaluate.hpp), with the cluster, model,
  /// lengths, seed and trainer mechanisms of that one.
  SteadyState operator()(const orchestrator::PipelineConfig& config);

 private:
  class Costs;
  std::unique_ptr<Costs> costs_;
};

}  // namespace temper::study

template <>
struct temper::EnumNames<temper::study::Pace> {
  using P = study::Pace;
  static constexpr std::array<std::pair<P, std::string_view>, 5> value{
      {{P::Update, "update"},
       {P::Reference, "reference"},
       {P::LongAnswers, "long answers"},
       {P::Slots, "slots"},
       {P::Turns, "turns"}}};
};
