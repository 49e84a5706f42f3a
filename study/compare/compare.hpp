// Compares staleness rules: the same run under each rule at each bound, optionally with several
// seeds and other varied configuration keys.
//
// A cell is a rule, a bound and a value of each varied key; a run is a cell with a seed. Equal
// seeds mean equal prompt streams. Where lengths are generated (simulated hardware, `policy:
// synthetic`), they also mean equal lengths: the k-th response has the same length in every cell.
//
// Runs on simulated hardware without a trained policy run in this process, several at once. All
// others (local hardware, simulated hardware that trains a policy) are real runs, one after the
// other, each in its own folder (compare_runs.hpp).
//
// Figures cover whole runs, because a rule also has costs at the ends of a run, and all generated
// tokens count:
//   wasted   tokens sampled that no update trained, over all tokens sampled
//   bias     mean length of trained responses over that of all begun responses, each at the length
//            that it would have reached; below 1, the trainer sees shorter responses than the
//            policy generates. Finished responses are no substitute: they exclude the long ones
//            that were aborted. Their mean is `generated_length`; it is the denominator on local
//            hardware with a real policy, where the other length is unknown.
// Learning figures: study/simulate/learning.hpp.
#pragma once

#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/record/sentences.hpp"
#include "study/simulate/axes.hpp"
#include "study/simulate/simulate.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace temper::study {

/// Runs config in config.run_dir from start to end and returns how it ended. Error: it could not
/// start. `on_update` is called after each update.
using StartRun = std::function<Result<orchestrator::RunEnd>(
    const orchestrator::PipelineConfig& config,
    const std::function<void(const orchestrator::RunMetrics&)>& on_update)>;

struct CompareOptions {
  std::filesystem::path config;
  std::vector<std::string> sets;  ///< Without the keys that the comparison sets.
  std::vector<orchestrator::StalenessRuleKind> policies;
  std::vector<double> etas;          ///< `sync` runs once, at 0.
  std::vector<std::uint64_t> seeds;  ///< Empty: the configuration's seed.
  std::vector<SweepAxis> vary;
  std::uint64_t steps = 0;  ///< Updates per run; 0: as configured.
  double target_reward = 0.9;
  SimulateOptions simulate;  ///< Options of the runs in this process.

  // --- Real runs
  std::filesystem::path out;  ///< Run folders are out/runs/*.
  /// New: no run folder may exist. Resume: complete runs of the same configuration are kept; others
  /// are restarted.
  enum class Folders { New, Resume } folders = Folders::New;
  StartRun start_run;
  /// Progress lines: Lasting for each finished run, Passing in between.
  enum class Line { Lasting, Passing };
  std::function<void(Line, const std::string&)> on_line;
};

/// Parses --policies; empty: all, in the order of StalenessRuleKind. Errors: an unknown name, a
/// duplicate.
Result<std::vector<orchestrator::StalenessRuleKind>> parse_policies(
    const std::vector<std::string>& names);
/// NotRun: the configuration is invalid, for example a bound that the rule does not allow.
enum class CompareEnd { Ran, NotRun, Failed };

/// One run. Figures are 0 where there are none; `reason` says why.
struct CompareRow {
  std::string policy;
  double eta = 0;
  std::string vary;  ///< "key=value ..."; empty if nothing is varied.
  std::uint64_t seed = 0;
  CompareEnd end = CompareEnd::Ran;
  std::uint64_t updates = 0;
  double seconds = 0;  ///< Wall time, or virtual time.
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
  std::string folder;  ///< Folder of a real run.
  std::string reason;  ///< Why it did not run, or why it failed.
};

struct PolicyComparison {
  /// Sorted by eta (`sync` first), then by rule in the given order, varied keys and seed.
  std::vector<CompareRow> rows;
  std::vector<std::vector<RewardPoint>> rewards;  ///< Per row; empty if nothing is trained.
  double target_reward = 0;
  enum class Time { Wall, Virtual } time = Time::Virtual;
  enum class End { Whole, Stopped } end = End::Whole;  ///< Stopped: the user stopped a real run.
};

/// Errors, before any run starts: the configuration cannot be read; contradictory options; a folder
/// that holds another run. If the user stops a real run, the remaining runs are skipped.
Result<PolicyComparison> compare(const CompareOptions& options);

/// A configuration of a comparison, with the part of its row known before it runs.
struct CompareJob {
  CompareRow row;
  orchestrator::PipelineConfig config;
};
/// In the order of PolicyComparison::rows. Errors: as compare(), except for folders.
Result<std::vector<CompareJob>> compare_jobs(const CompareOptions& options);

/// Whether a job runs as `temper run` would.
bool is_real_run(const orchestrator::PipelineConfig& config);

template <class V>
void describe(V& v, CompareRow& r) {
  v.field(1, "policy", r.policy);
  v.field(2, "eta", r.eta);
  v.field(19, "vary", r.vary);
  v.field(20, "seed", r.seed);
  v.field(21, "end", r.end);
  v.field(3, "updates", r.updates);
  v.field(4, "seconds", r.seconds);
  v.field(5, "trained_per_s", r.trained_per_s);
  v.field(6, "generated_per_s", r.generated_per_s);
  v.field(7, "busy", r.busy);
  v.field(8, "staleness_max", r.staleness_max);
  v.field(9, "staleness_mean", r.staleness_mean);
  v.field(10, "staleness", r.staleness);
  v.field(11, "wasted", r.wasted);
  v.field(12, "groups_trained", r.groups_trained);
  v.field(13, "groups_evicted", r.groups_evicted);
  v.field(14, "trained_length", r.trained_length);
  v.field(15, "generated_length", r.generated_length);
  v.field(16, "begun_length", r.begun_length);
  v.field(17, "bias", r.bias);
  v.field(22, "final_reward", r.final_reward);
  v.field(23, "steps_to_target", r.steps_to_target);
  v.field(24, "seconds_to_target", r.seconds_to_target);
  v.field(25, "folder", r.folder);
  v.field(18, "reason", r.reason);
}

}  // namespace temper::study

namespace temper {
template <>
struct EnumNames<study::CompareEnd> {
  using E = study::CompareEnd;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Ran, "ran"}, {E::NotRun, "not run"}, {E::Failed, "failed"}}};
};
}  // namespace temper
