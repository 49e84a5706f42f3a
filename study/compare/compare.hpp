// Staleness policies beside each other (scheduler/policy/): the same run under each of them at each
// bound, perhaps with several seeds and with other keys of the configuration varied.
//
// A cell is a policy, a bound and a value of each varied key; a run is a cell with a seed. Equal
// seeds mean equal prompt streams, and where lengths are made up (simulated hardware, `policy:
// synthetic`) equal lengths: the k-th response is equally long in every cell.
//
// Runs on simulated hardware whose policy is only counted are tried in this process, several at
// once. All others (local hardware, twins) are real runs, one after the other, each in a folder of
// its own (compare_runs.hpp).
//
// Figures are those of whole runs, since what a policy costs at the ends of a run is its own, and
// everything that was ever generated is counted:
//   wasted   tokens sampled that no update trained, over all tokens sampled
//   bias     mean length of trained responses over that of all begun, each as long as it would have
//            become: below 1, the trainer sees answers that are shorter than those of the policy.
//            (Over those generated to the end it would look better: a response that was aborted,
//            as long ones are, is not among them. Their mean is `generated_length`. It is what bias
//            is over on local hardware with a real policy, where nobody knows the other.)
// What is learned: study/simulate/learning.hpp.
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

/// Makes a real run from its start to its end, in config.run_dir, and says how it ended. Error: it
/// could not begin. `on_update` is called after each update.
using StartRun = std::function<Result<orchestrator::RunEnd>(
    const orchestrator::PipelineConfig& config,
    const std::function<void(const orchestrator::RunMetrics&)>& on_update)>;

struct CompareOptions {
  std::filesystem::path config;
  std::vector<std::string> sets;  ///< Without the keys that the comparison decides.
  std::vector<orchestrator::StalenessRuleKind> policies;
  std::vector<double> etas;          ///< `sync` is run once, at 0.
  std::vector<std::uint64_t> seeds;  ///< Empty: the configuration's own.
  std::vector<SweepAxis> vary;
  std::uint64_t steps = 0;  ///< Updates of each run; 0: as configured.
  double target_reward = 0.9;
  SimulateOptions simulate;  ///< Of the runs in this process.

  // --- Real runs
  std::filesystem::path out;  ///< Their folders are in out/runs.
  /// New: none of the folders may be there. Resume: a whole run of the same configuration is not
  /// run again, one that did not end well is begun anew.
  enum class Folders { New, Resume } folders = Folders::New;
  StartRun start_run;
  /// Lines for people: one per run that ended (`lasting`), others while it goes on.
  enum class Line { Lasting, Passing };
  std::function<void(Line, const std::string&)> on_line;
};

/// Of a list on the command line; empty: all, in the order of StalenessRuleKind. Errors: a name that is
/// none, or twice the same.
Result<std::vector<orchestrator::StalenessRuleKind>> parse_policies(const std::vector<std::string>& names);
/// NotRun: the configuration breaks a rule, such as a bound that the policy cannot have.
enum class CompareEnd { Ran, NotRun, Failed };

/// One run. Figures are 0 where there is none, with the reason.
struct CompareRow {
  std::string policy;
  double eta = 0;
  std::string vary;  ///< "key=value ..."; empty: nothing is varied.
  std::uint64_t seed = 0;
  CompareEnd end = CompareEnd::Ran;
  std::uint64_t updates = 0;
  double seconds = 0;  ///< On the run's clock: wall, or virtual.
  double trained_per_s = 0, generated_per_s = 0;
  double busy = 0;
  std::int64_t staleness_max = 0;  ///< s = T - v0, of trained groups.
  double staleness_mean = 0;
  std::string staleness;  ///< "s:groups s:groups ..."
  double wasted = 0;      ///< Share of generated tokens.
  std::uint64_t groups_trained = 0, groups_evicted = 0;
  double trained_length = 0, generated_length = 0, begun_length = 0, bias = 0;
  std::optional<double> final_reward;  ///< This and the next two: of policies that learn.
  std::optional<std::uint64_t> steps_to_target;
  std::optional<double> seconds_to_target;
  std::string folder;  ///< Of a real run.
  std::string reason;  ///< Why it did not run, or failed.
};

struct PolicyComparison {
  /// By eta (`sync` first), then by policy in the order given, by varied keys, by seed.
  std::vector<CompareRow> rows;
  std::vector<std::vector<RewardPoint>> rewards;  ///< Of each row; empty where nothing learns.
  double target_reward = 0;
  enum class Time { Wall, Virtual } time = Time::Virtual;
  enum class End { Whole, Stopped } end = End::Whole;  ///< Stopped: by the user, in a real run.
};

/// Errors, before anything is run: the configuration cannot be read; options that cannot be meant;
/// a folder that holds another run. Where the user stops a real run the rest is not run.
Result<PolicyComparison> compare(const CompareOptions& options);

/// A configuration of a comparison, and what of its row is known before it has run.
struct CompareJob {
  CompareRow row;
  orchestrator::PipelineConfig config;
};
/// In the order of PolicyComparison::rows. Errors: as compare(), but for folders.
Result<std::vector<CompareJob>> compare_jobs(const CompareOptions& options);

/// Whether a job is run as `temper run` would.
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
