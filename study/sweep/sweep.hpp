// A grid of configurations: keys take every combination of given values, optionally with several
// seeds each.
//
// A cell is a combination of the values of --over; a run is a cell with a seed. Of the keys of
// --any, each cell keeps the combination with the most tokens/s. Equal seeds mean equal prompt
// streams. Where lengths are generated (simulated hardware, `policy: synthetic`), they also mean
// equal lengths: the k-th response has the same length in every cell.
//
// Runs on simulated hardware without a trained policy run in this process, several at once. All
// others (local hardware, simulated hardware that trains a policy) are real runs, one after the
// other, each in its own folder (sweep_runs.hpp).
//
// Rates cover whole runs, because a staleness rule also has costs at the ends of a run, or, if
// `steady_steps` is given, the steady state (study/simulate/simulate.hpp). Shares of tokens,
// lengths and rewards always cover whole runs and all generated tokens:
//   wasted   tokens sampled that no update trained, over all tokens sampled
//   bias     mean length of trained responses over that of all begun responses, each at the length
//            that it would have reached; below 1, the trainer sees shorter responses than the
//            policy generates. Finished responses are no substitute: they exclude the long ones
//            that were aborted. Their mean is `generated_length`; it is the denominator on local
//            hardware with a real policy, where the other length is unknown.
// Learning figures: study/simulate/learning.hpp.
#pragma once

#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/record/sentences.hpp"
#include "study/simulate/axes.hpp"
#include "study/simulate/simulate.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace temper::study {

/// Runs config in config.run_dir to its end and returns how it ended. With Folders::Resume it
/// resumes the run that the folder holds, if any. Error: it could not start. `on_update` is called
/// after each update.
using StartRun = std::function<Result<orchestrator::RunEnd>(
    const orchestrator::PipelineConfig& config,
    const std::function<void(const orchestrator::RunMetrics&)>& on_update)>;

struct SweepOptions {
  orchestrator::ConfigFile config;
  std::vector<std::string> sets;     ///< Without the keys that the sweep sets.
  std::vector<SweepAxis> over;       ///< At least one; the last one varies fastest.
  std::vector<SweepAxis> any;        ///< Free keys: the best value is kept.
  std::vector<std::uint64_t> seeds;  ///< Empty: the configuration's seed.
  /// Fitted: layouts.hpp completes every configuration; the trainer's layout, rollout.ep and
  /// rollout.kv_share then differ from the file.
  enum class Layouts { AsGiven, Fitted } layouts = Layouts::AsGiven;
  std::uint64_t steps = 0;         ///< Updates per run; 0: as configured.
  std::uint64_t steady_steps = 0;  ///< Above 0: rates cover this many updates in the steady state.
  double target_reward = 0.9;
  SimulateOptions simulate;  ///< Options of the runs in this process.

  // --- Real runs
  std::filesystem::path out;  ///< Run folders are out/runs/*.
  /// New: no run folder may exist. Resume: complete runs of the same configuration are kept; others
  /// are resumed, or restarted if they are simulated and train a policy.
  enum class Folders { New, Resume } folders = Folders::New;
  StartRun start_run;
  /// Progress lines: Lasting for each finished run, Passing in between.
  enum class Line { Lasting, Passing };
  std::function<void(Line, const std::string&)> on_line;
};

/// NotRun: the configuration is invalid, for example a bound that the rule does not allow.
enum class SweepEnd { Ran, NotRun, Failed };

/// One run. Figures are 0 where there are none; `reason` says why.
struct SweepRun {
  std::uint64_t seed = 0;
  SweepEnd end = SweepEnd::Ran;
  std::uint64_t updates = 0;
  double seconds = 0;       ///< Wall time, or virtual time.
  double tokens_per_s = 0;  ///< The sustained rate; of a whole run, the trained one.
  double trained_per_s = 0, generated_per_s = 0;
  double busy = 0;
  std::int64_t staleness_max = 0;  ///< s = T - v0, over trained groups.
  double staleness_mean = 0;
  std::string staleness;  ///< "s:groups s:groups ..."
  double wasted = 0;      ///< Share of the generated tokens.
  std::uint64_t groups_trained = 0, groups_evicted = 0;
  double trained_length = 0, generated_length = 0, begun_length = 0, bias = 0;
  std::optional<double> final_reward;  ///< This and the next two: only if a policy is trained.
  std::optional<std::uint64_t> steps_to_target;
  std::optional<double> seconds_to_target;
  std::optional<double> held_out, best_held_out;  ///< pass@1, if evaluations are configured.
  std::string trainer;                            ///< This and the next: only with fitted layouts.
  std::optional<double> kv_share;  ///< Share of memory for the KV cache of an engine.
  std::optional<double> tokens_per_price, tokens_per_kwh;  ///< Trained; only if configured.
  std::string folder;                                      ///< Folder of a real run.
  std::string reason;  ///< Why it did not run, or why it failed.
};

struct SweepCell {
  /// One per key of `over` and then of `any`; "-" for free keys if nothing ran.
  std::vector<std::string> values;
  std::vector<SweepRun> runs;                     ///< One per seed.
  std::vector<std::vector<RewardPoint>> rewards;  ///< Per run; empty if nothing is trained.
  std::size_t tried = 0, refused = 0;             ///< Combinations of free keys.
};

/// Mean over the seeds that ran; nullopt if none did.
std::optional<double> mean_of(const SweepCell& cell, double SweepRun::*field);

struct Sweep {
  std::vector<SweepAxis> over, any;
  std::vector<SweepCell> cells;  ///< In the order of combination().
  SweepOptions::Layouts layouts = SweepOptions::Layouts::AsGiven;
  double target_reward = 0;
  enum class Interval { Whole, Steady } interval = Interval::Whole;  ///< Of the rates.
  enum class Time { Wall, Virtual } time = Time::Virtual;
  enum class End { Whole, Stopped } end = End::Whole;  ///< Stopped: by the user.
};

/// A run of the grid before it runs.
struct SweepJob {
  std::vector<std::string> values;  ///< As SweepCell::values.
  SweepRun run;                     ///< The part that is known before.
  orchestrator::PipelineConfig config;
};
/// All runs, by cell, combination of free keys, and seed. Errors: the configuration or a value
/// cannot be read; contradictory options; nothing can run; more than kMostCombinations.
Result<std::vector<SweepJob>> sweep_jobs(const SweepOptions& options);

/// Whether a job runs as `temper run` would.
bool is_real_run(const orchestrator::PipelineConfig& config);

/// Runs the result of sweep_jobs(). If the user stops a real run, the remaining runs are skipped.
/// Error, before any run starts: a folder holds another run.
Result<Sweep> run_sweep(const SweepOptions& options, std::vector<SweepJob> jobs);

/// The keys of all axes, in order, and their names in tables: without sections where these are not
/// needed to tell them apart.
std::vector<std::string> keys_of(const std::vector<SweepAxis>& over,
                                 const std::vector<SweepAxis>& any);
std::vector<std::string> short_names(const std::vector<std::string>& keys);
/// "rule=exact bound=2". Requires: as many values as names.
std::string setting_text(const std::vector<std::string>& names,
                         const std::vector<std::string>& values);

void describe(auto& v, SweepRun& r) {
  v.field(1, "seed", r.seed);
  v.field(2, "end", r.end);
  v.field(3, "updates", r.updates);
  v.field(4, "seconds", r.seconds);
  v.field(5, "tokens_per_s", r.tokens_per_s);
  v.field(6, "trained_per_s", r.trained_per_s);
  v.field(7, "generated_per_s", r.generated_per_s);
  v.field(8, "busy", r.busy);
  v.field(9, "staleness_max", r.staleness_max);
  v.field(10, "staleness_mean", r.staleness_mean);
  v.field(11, "staleness", r.staleness);
  v.field(12, "wasted", r.wasted);
  v.field(13, "groups_trained", r.groups_trained);
  v.field(14, "groups_evicted", r.groups_evicted);
  v.field(15, "trained_length", r.trained_length);
  v.field(16, "generated_length", r.generated_length);
  v.field(17, "begun_length", r.begun_length);
  v.field(18, "bias", r.bias);
  v.field(19, "final_reward", r.final_reward);
  v.field(20, "steps_to_target", r.steps_to_target);
  v.field(21, "seconds_to_target", r.seconds_to_target);
  v.field(22, "trainer", r.trainer);
  v.field(23, "kv_share", r.kv_share);
  v.field(24, "folder", r.folder);
  v.field(25, "reason", r.reason);
  v.field(26, "tokens_per_price", r.tokens_per_price);
  v.field(27, "tokens_per_kwh", r.tokens_per_kwh);
  v.field(28, "held_out", r.held_out);
  v.field(29, "best_held_out", r.best_held_out);
}

}  // namespace temper::study

namespace temper {
template <>
struct EnumNames<study::SweepEnd> {
  using E = study::SweepEnd;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Ran, "ran"}, {E::NotRun, "not run"}, {E::Failed, "failed"}}};
};
}  // namespace temper
