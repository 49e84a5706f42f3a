// Times of the steps of one simulated rollout engine, from the cost model.
//
// An engine of n devices is dp = n / tp replicas in lock step; the experts of a model are spread
// over ep of its devices, which the tokens of ep / tp replicas reach.
//   decode   parallel_decode_seconds() of the fullest replica, b = ceil(running / dp) responses of
//            mean context c. This is affine in c: A(b) + S(b) c, evaluated at two contexts and
//            cached for each b. An untuned host adds its overhead to every step. Responses of
//            several versions are one such pass for each version, one after another.
//   drafts   a step that verifies n drafts brings a tokens to each response (accepted_tokens() of
//            sim_hw/steps/drafts.hpp), always this mean. Its seconds and exchanges are spread
//            evenly over them, so that a token takes 1 / a of a step, and what is here called a
//            step is the part that brings one token. No chance is drawn: a replay repeats the run,
//            and responses of equal length end together, as without drafts. A pass with b above
//            disable_by_batch_size drafts nothing; a layer that drafts in others follows it
//   prefill  one pass over t = max(tokens / dp, longest piece) tokens of a replica: operators and
//            exchanges as for t tokens, attention of each piece over itself and what is cached
//            before it (the difference of two causal triangles), spread over the replicas likewise
//   mixed    a decode step, and what it adds to the operators and exchanges of its b tokens that
//            there are b + t, with the attention of the pieces
//   parked   the cache of a preempted response, copied to the host and back over each device's
//            link; both copies are charged when it returns
//   moved    the cache of another engine: the same, and between devices one engine away
// Use: the FLOP of their tokens (sim_hw/model/flops.hpp; repeated computations do not count), the
// exchanges that are priced, and copies of parked pieces. The busiest expert device has the
// imbalance of the policy version (actors/simulation/expert_imbalance.hpp). Assumptions: all
// replicas are equally full; prefill has no vocabulary head; the first token comes from a decode
// step like all others, as in sim_hw/iteration/cluster.hpp. One owner, no threads.
//
// If each response stands for w (SimulationSettings::response_weight), the simulated responses fill
// dp / w replicas, each as full as all are in the whole run: times are those of the whole.
#pragma once

#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "rollout/simulated/batch.hpp"
#include "sim_hw/model/flops.hpp"
#include "sim_hw/steps/drafts.hpp"

namespace temper::rollout {

class EngineCost {
 public:
  /// Requires: actors::check_rollout(settings); settings.response_weight divides the replicas.
  /// Until use_version(), under typical loads of the experts.
  explicit EngineCost(const actors::SimulationSettings& settings);
  /// The loads of the experts under this version. Requires: versions do not decrease.
  void use_version(PolicyVersion version);

  /// Decode steps, of one token each, of responses that have `context` cached tokens in total
  /// before the first one.
  struct Decode {
    double fixed = 0;        ///< Seconds per step.
    double per_context = 0;  ///< Seconds per cached token of all responses.
    double running = 0;
    std::int64_t context = 0;
    sim_hw::LevelBytes sent;  ///< Bytes per step and device.
    bool drafted = false;
    /// The sum of an arithmetic series.
    double seconds(std::int64_t steps) const {
      const auto k = static_cast<double>(steps);
      return k * fixed +
             per_context * (k * static_cast<double>(context) + running * (k * (k - 1) / 2));
    }
  };
  /// Requires: responses run.
  Decode decode(const VersionLoad& load);
  /// Lower bound of the seconds of `steps` decode steps while at most `load` responses run, under
  /// any loads of the experts.
  Duration least(std::int64_t steps, std::int64_t load);
  /// FLOP of as many steps of all responses: each token attends to the cached ones and itself.
  double decode_flops(std::int64_t running, std::int64_t steps, std::int64_t context) const;

  /// Seconds of the next prefill step over `pieces`, from the front: at most prefill_tokens of a
  /// piece and of a replica, and parked pieces in addition. If responses decode in it (`decoding`),
  /// those that it adds to their step.
  double prefill(const std::deque<PrefillPiece>& pieces, std::int64_t decoding) const;
  /// Resources that this step uses, over all devices.
  struct PrefillUse {
    double flops = 0;
    sim_hw::LevelBytes sent;
    double copied = 0;  ///< Bytes copied to the host, and as many from it.
  };
  PrefillUse prefill_use(const std::deque<PrefillPiece>& pieces) const;
  /// Whether copying a parked or moved piece takes less time than recomputing it, considered alone.
  bool copying_pays(const PrefillPiece& piece) const;
  /// Seconds to copy a parked or moved piece.
  double copy_seconds(const PrefillPiece& piece) const { return copies(piece, piece.tokens); }
  /// Bytes on one device per cached token.
  double kv_token_bytes() const { return kv_token_bytes_; }
  /// Tokens of each response in a step of the hardware that drafts, at least 1.
  double tokens_per_step() const { return tokens_per_step_; }
  /// Removes what that step computed.
  void finish_prefill(std::deque<PrefillPiece>& pieces) const;

  /// Number of replicas over which responses are spread.
  std::int64_t replicas() const { return replicas_; }

 private:
  struct PerBatch {
    double fixed = 0;
    double per_context = 0;  ///< Per token of the mean context.
    sim_hw::LevelBytes sent;
    bool drafted = false;
    bool known = false;
  };
  bool drafts(std::int64_t batch) const {
    return drafts_.by != sim_hw::Draft::None && batch <= most_drafting_;
  }
  const PerBatch& per_batch(std::int64_t batch);
  PerBatch compute(std::int64_t batch, double expert_imbalance) const;
  /// Changes the imbalance, and drops what depends on it.
  void set_imbalance(double imbalance);
  double attention(double tokens) const;
  /// Operators and exchanges of a pass without attention, for the tokens of a replica.
  double pass(double tokens) const;
  double copies(const PrefillPiece& piece, std::int64_t tokens) const;
  /// Tokens of a replica in a step that computes `tokens`, `longest` of them in one piece.
  double share_of(std::int64_t tokens, std::int64_t longest) const;

  // Constant after construction.
  sim_hw::Device device_;
  sim_hw::Fabric fabric_;
  sim_hw::StepModel model_;
  sim_hw::ModelFlops flops_;
  sim_hw::RolloutLayout layout_;  ///< dp: replicas whose tokens reach the experts of a device.
  std::int64_t replicas_;
  std::int64_t devices_;
  std::int64_t prefill_tokens_;
  double host_overhead_;
  sim_hw::Drafts drafts_;
  double tokens_per_step_;
  std::int64_t most_drafting_;  ///< Responses per replica; no step with more drafts.
  double kv_token_bytes_;
  // Mutable state: loads of the experts, and cached results.
  actors::ExpertImbalance experts_;
  std::vector<PerBatch> per_batch_;
  std::vector<double> least_{};  ///< Seconds of a step, by responses per replica.
};

}  // namespace temper::rollout
