// Looks for the best configuration of a pipeline before it runs: placement mode, split of the
// cards, layouts of both sides, engines and slots, staleness bound and any key that the user
// varies.
//
// On simulated hardware, three sieves:
//   1. Screen. Every point of every space (space.hpp) that memory allows is judged by the
//      closed form (steady_state.hpp).
//   2. Thin. Thinned runs (study/simulate/simulate.hpp): of all if there are enough; else of the
//      best of all and of each mode and bound (half), of what is best once these have corrected
//      the closed form (sieve_correction.hpp), and of the neighbours (one step along one axis) of
//      the best one whose neighbours were not tried, until the runs are spent.
//   3. Decide. The best few run whole and longer, and so does the configuration as it was given;
//      the best of these that meets the constraints is the answer: tuning never makes it worse.
// On this machine's cores the space is small: every point is forecast from a model of it
// (study/machine/machine_run.hpp), with the real scheduler, and 3 follows.
//
// What is best: more of TuneObjective::Throughput, or less time: of `steps` updates, or until a
// reward, for which curves recorded by `temper compare` say how many updates a mean staleness needs
// (reward_curve.hpp).
//
// Ties. Nobody can tell apart what differs by less than tune errs itself: on simulated hardware by
// what the finalists' rates differ where other lengths are drawn (a second whole run of each, of
// the next seed: the root mean square of the relative differences); on this machine by the error of
// the fits that a forecast is made of, each weighted with the time that the given configuration
// spends in its kind of work, and by the share of the machine that others had while it was
// measured. Of the plans that tie with the fastest the least stale one is advised.
//
// The answer depends on the options alone, not on the number of threads. Where `stop` says so, what
// is left of 2 is not run, and the best so far is decided on.
#pragma once

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

enum class TuneObjective { Throughput, Steps, Reward };

struct TuneConstraints {
  std::optional<double> max_staleness;  ///< Of the bound, and of what a run trains.
  std::optional<double> min_tokens_per_s;
  std::optional<Bytes> max_memory;  ///< Of a device, less than it has.
};

/// Everything but placement, layouts and bound is as in `like`, which need not be able to run.
struct TuneRegion {
  orchestrator::PipelineConfig like;
  orchestrator::PlacementMode mode = orchestrator::PlacementMode::Separate;
};

struct TuneOptions {
  std::filesystem::path config;
  std::vector<std::string> sets;
  /// In place of config, sets, modes and vary, on simulated hardware; nothing is run as given.
  std::vector<TuneRegion> regions;
  std::vector<orchestrator::PlacementMode> modes;  ///< Empty: all that the hardware knows.
  std::vector<double> etas{0, 1, 2, 4};
  std::vector<SweepAxis> vary;
  /// Axes of space.hpp that have these values alone; simulated hardware.
  std::vector<Space::Axis> only;
  TuneObjective objective = TuneObjective::Throughput;
  /// Of TuneObjective::Reward; with another objective, for saying what staleness costs.
  std::optional<RewardCurve> curve;
  TuneConstraints constraints;
  std::optional<MachineModel> calibration;  ///< Of local hardware.
  std::optional<RunRecord> lengths;         ///< Its answers, in place of the calibration's.
  int runs = 64;                            ///< Of step 2.
  std::int64_t response_weight = 4;         ///< Of those thinned runs.
  int finalists = 4;
  std::uint64_t final_updates = 20;
  int threads = 1;

  struct Progress {
    std::string step;
    std::size_t done = 0, of = 0;
    std::string best;  ///< So far, in words; empty: nothing was run yet.
  };
  std::function<void(const Progress&)> on_progress;
  std::function<bool()> stop;
};

/// One configuration that was run, or the one that was given.
struct TuneRow {
  std::string found_by;  ///< as given, screen, corrected, neighbour, local
  std::string mode;
  double eta = 0;
  std::string vary;
  std::int32_t rollout_cards = 0, reference_cards = 0, trainer_cards = 0;
  std::int32_t engines = 0, slots = 0;
  std::string rollout_layout, trainer_layout;
  double return_share = 0;
  std::string lending;
  std::optional<double> closed_tokens_per_s, closed_staleness;
  std::optional<double> thinned_tokens_per_s, thinned_staleness;
  std::optional<double> tokens_per_s, seconds_per_update, staleness, busy;
  std::optional<std::int64_t> staleness_max;
  std::optional<double> objective;        ///< Tokens/s or seconds.
  std::optional<double> hours_to_reward;  ///< By the curve, of the longest run.
  std::string verdict;                    ///< advised; tie: as fast, within tune's own error
  std::string reason;                     ///< Why it is no answer.
};

struct Candidate {
  TuneRow row;
  orchestrator::PipelineConfig config;
  std::optional<Figures> figures;  ///< Of the whole run.
};

struct Tuned {
  TuneObjective objective = TuneObjective::Throughput;
  std::vector<Candidate> tried;   ///< Best first, those without a whole run last.
  std::size_t best = 0;           ///< In `tried`: what is advised.
  std::size_t fastest = 0;        ///< By the objective; `best` ties with it.
  std::vector<std::size_t> ties;  ///< With the fastest, itself among them.
  double error = 0;               ///< Relative, of two plans' objectives against each other.
  std::optional<RewardCurve> curve;
  std::size_t given = 0;  ///< In `tried`; its size with TuneOptions::regions.
  std::size_t screened = 0, fitting = 0, runs = 0;
  std::map<std::string, std::size_t> refused;
  /// Closed form against thinned runs: mean |ratio - 1| of tokens/s, Spearman's rank correlation of
  /// them, and mean difference of the mean staleness.
  struct Agreement {
    double error = 0, ranks = 0, staleness = 0;
  };
  std::optional<Agreement> closed;
  bool stopped = false;
};

/// Errors (InvalidInput), before anything runs: an empty or contradictory space; after: constraints
/// that nothing meets, each with the nearest plan and by how much it fails them.
Result<Tuned> tune(const TuneOptions& options);

template <class V>
void describe(V& v, TuneRow& r) {
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
  v.field(12, "closed_tokens_per_s", r.closed_tokens_per_s);
  v.field(13, "closed_staleness", r.closed_staleness);
  v.field(14, "sampled_tokens_per_s", r.thinned_tokens_per_s);
  v.field(15, "tokens_per_s", r.tokens_per_s);
  v.field(16, "seconds_per_update", r.seconds_per_update);
  v.field(17, "staleness", r.staleness);
  v.field(18, "staleness_max", r.staleness_max);
  v.field(19, "busy", r.busy);
  v.field(20, "objective", r.objective);
  v.field(24, "sampled_staleness", r.thinned_staleness);
  v.field(25, "hours_to_reward", r.hours_to_reward);
  v.field(26, "verdict", r.verdict);
  v.field(22, "return_share", r.return_share);
  v.field(23, "lending", r.lending);
  v.field(21, "reason", r.reason);
}

}  // namespace temper::study

namespace temper {
template <>
struct EnumNames<study::TuneObjective> {
  using O = study::TuneObjective;
  static constexpr std::array<std::pair<O, std::string_view>, 3> value{
      {{O::Throughput, "throughput"}, {O::Steps, "steps"}, {O::Reward, "reward"}}};
};
}  // namespace temper
