// Finds the best configuration of a pipeline before it runs: placement mode, split of the cards,
// layouts of both sides, engines and slots, staleness bound and any key that the user varies.
//
// On simulated hardware the search has three stages:
//   1. Analytic screen. Every point of every space (space.hpp) that fits the memory is judged by
//      the closed form (steady_state.hpp).
//   2. Sampled runs (study/simulate/simulate.hpp): of all points if the runs suffice; else of the
//      best overall and of each mode and bound (half), of the best after these have corrected the
//      closed form (closed_form_correction.hpp), and of the neighbors (one step along one axis) of
//      the best point whose neighbors were not tried, until the runs are spent.
//   3. Full runs. The best few, and the configuration as given, run completely and longer; the best
//      of these that meets the constraints is the answer, so tuning never makes it worse.
// On this machine's cores the space is small: every point is forecast from a model of the machine
// (study/machine/machine_run.hpp) with the real scheduler, then stage 3 follows.
//
// Objective: more of TuneObjective::Throughput; less time, for `steps` updates or until a reward;
// or more trained tokens per price of the cards or per kWh (orchestrator/metrics/cost.hpp), also on
// fewer cards. For a reward, curves recorded by `temper sweep` give the number of updates at a mean
// staleness (reward_curve.hpp). All three stages use the same objective (tune_objective.hpp).
//
// Ties. Differences below tune's own error are ties. On simulated hardware the error is the
// difference of the finalists' rates under other lengths (a second full run of each with the next
// seed: the root mean square of the relative differences). On this machine it is the error of the
// fits behind a forecast, each weighted with the time that the given configuration spends in its
// kind of work, plus the share of the machine that other programs had during the measurement. Of
// the plans that tie with the fastest, the least stale one is advised.
//
// The answer depends only on the options, not on the number of threads. If `stop` returns true, the
// rest of stage 2 is skipped and the best so far goes on to stage 3.
#pragma once

#include "orchestrator/pipeline/load.hpp"
#include "study/machine/calibration.hpp"
#include "study/machine/run_calibration.hpp"
#include "study/search/reward_curve.hpp"
#include "study/search/space.hpp"
#include "study/search/steady_state.hpp"
#include "study/simulate/axes.hpp"
#include "study/simulate/simulate.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace temper::study {

enum class TuneObjective { Throughput, Steps, Reward, Price, Energy };

struct TuneConstraints {
  std::optional<double> max_staleness;  ///< Limits the bound and the staleness of trained groups.
  std::optional<double> min_tokens_per_s;
  std::optional<Bytes> max_memory;  ///< Limit below a device's own memory.
};

/// Everything except placement, layouts and bound is as in `like`, which need not be runnable.
struct TuneRegion {
  orchestrator::PipelineConfig like;
  orchestrator::PlacementMode mode = orchestrator::PlacementMode::Separate;
};

struct TuneOptions {
  orchestrator::ConfigFile config;
  std::vector<std::string> sets;
  /// Replaces config, sets, modes and vary, on simulated hardware; nothing runs as given.
  std::vector<TuneRegion> regions;
  std::vector<orchestrator::PlacementMode> modes;  ///< Empty: all that the hardware supports.
  std::vector<double> etas{0, 1, 2, 4};
  std::vector<SweepAxis> vary;
  /// Axes of space.hpp restricted to these values; simulated hardware only.
  std::vector<Space::Axis> only;
  TuneObjective objective = TuneObjective::Throughput;
  /// Required for TuneObjective::Reward; otherwise only reports the cost of staleness.
  std::optional<RewardCurve> curve;
  TuneConstraints constraints;
  std::optional<MachineModel> calibration;  ///< For local hardware.
  std::optional<RunRecord> lengths;         ///< Recorded lengths, instead of the calibration's.
  int runs = 64;                            ///< Runs of stage 2.
  std::int64_t response_weight = 4;         ///< Weight of the sampled runs.
  int finalists = 4;
  std::uint64_t final_updates = 20;
  int threads = 1;

  struct Progress {
    std::string step;
    std::size_t done = 0, of = 0;
    std::string best;  ///< Best result so far, as text; empty before the first run.
  };
  std::function<void(const Progress&)> on_progress;
  std::function<bool()> stop;
};

/// One configuration that ran, or the given one.
struct TuneRow {
  std::string found_by;  ///< as given, screen, corrected, neighbour, local
  std::string mode;
  double eta = 0;
  std::string vary;
  std::int32_t total_cards = 0, rollout_cards = 0, reference_cards = 0, trainer_cards = 0;
  std::int32_t engines = 0, slots = 0;
  std::string rollout_layout, trainer_layout;
  std::string reference_layout;  ///< Empty: it follows the trainer's.
  double return_share = 0;
  std::string lending;
  std::optional<double> closed_tokens_per_s, closed_staleness;
  std::optional<double> sampled_tokens_per_s, sampled_staleness;
  std::optional<double> tokens_per_s, seconds_per_update, staleness, busy;
  std::optional<std::int64_t> staleness_max;
  /// Tokens/s, seconds, or tokens per unit of price or kWh.
  std::optional<double> objective;
  /// By the closed form and a sampled run; only by price and energy.
  std::optional<double> closed_objective, sampled_objective;
  std::optional<double> tokens_per_price, tokens_per_kwh;  ///< Trained; only if configured.
  std::optional<double> hours_to_reward;                   ///< By the curve, from the longest run.
  std::string verdict;  ///< advised; tie: as fast within tune's own error.
  std::string reason;   ///< Why it cannot be the answer.
};

struct Candidate {
  TuneRow row;
  orchestrator::PipelineConfig config;
  std::optional<Figures> figures;  ///< For the full run.
};

struct TuneResult {
  TuneObjective objective = TuneObjective::Throughput;
  std::vector<Candidate> tried;   ///< Best first; those without a full run last.
  std::size_t best = 0;           ///< Index in `tried` of the advised configuration.
  std::size_t fastest = 0;        ///< By the objective; `best` ties with it.
  std::vector<std::size_t> ties;  ///< Configurations that tie with the fastest, including itself.
  double error = 0;  ///< Relative error of the objectives of two plans against each other.
  std::optional<RewardCurve> curve;
  std::size_t given = 0;  ///< Index in `tried`; its size with TuneOptions::regions.
  std::size_t screened = 0, fitting = 0, runs = 0;
  std::map<std::string, std::size_t> refused;
  /// Closed form against sampled runs: mean |ratio - 1| of tokens/s, or of tokens per price or kWh
  /// if that is the objective; Spearman's rank correlation of the same; and mean difference of the
  /// mean staleness.
  struct Agreement {
    double error = 0, ranks = 0, staleness = 0;
  };
  std::optional<Agreement> closed;
  bool stopped = false;
};

/// Errors (InvalidInput) before anything runs: an empty or contradictory space. After: no plan
/// meets the constraints; names the nearest plan and by how much it fails.
Result<TuneResult> tune(const TuneOptions& options);

void describe(auto& v, TuneRow& r) {
  v.field(1, "found_by", r.found_by);
  v.field(2, "mode", r.mode);
  v.field(3, "eta", r.eta);
  v.field(4, "vary", r.vary);
  v.field(5, "rollout_cards", r.rollout_cards);
  v.field(6, "reference_cards", r.reference_cards);
  v.field(7, "trainer_cards", r.trainer_cards);
  v.field(8, "engines", r.engines);
  v.field(9, "slots", r.slots);
  v.field(10, "rollout_layout", r.rollout_layout);
  v.field(11, "trainer_layout", r.trainer_layout);
  v.field(32, "reference_layout", r.reference_layout);
  v.field(12, "closed_tokens_per_s", r.closed_tokens_per_s);
  v.field(13, "closed_staleness", r.closed_staleness);
  v.field(14, "sampled_tokens_per_s", r.sampled_tokens_per_s);
  v.field(15, "tokens_per_s", r.tokens_per_s);
  v.field(16, "seconds_per_update", r.seconds_per_update);
  v.field(17, "staleness", r.staleness);
  v.field(18, "staleness_max", r.staleness_max);
  v.field(19, "busy", r.busy);
  v.field(20, "objective", r.objective);
  v.field(24, "sampled_staleness", r.sampled_staleness);
  v.field(25, "hours_to_reward", r.hours_to_reward);
  v.field(26, "verdict", r.verdict);
  v.field(31, "total_cards", r.total_cards);
  v.field(27, "closed_objective", r.closed_objective);
  v.field(28, "sampled_objective", r.sampled_objective);
  v.field(29, "tokens_per_price", r.tokens_per_price);
  v.field(30, "tokens_per_kwh", r.tokens_per_kwh);
  v.field(22, "return_share", r.return_share);
  v.field(23, "lending", r.lending);
  v.field(21, "reason", r.reason);
}

}  // namespace temper::study

namespace temper {
template <>
struct EnumNames<study::TuneObjective> {
  using O = study::TuneObjective;
  static constexpr std::array<std::pair<O, std::string_view>, 5> value{
      {{O::Throughput, "throughput"},
       {O::Steps, "steps"},
       {O::Reward, "reward"},
       {O::Price, "price"},
       {O::Energy, "energy"}}};
};
}  // namespace temper
