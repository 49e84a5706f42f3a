// Starts a run: checks of this machine, the run folder, the driver. `temper run` shows one run on
// the terminal; `temper sweep` runs many, quietly.
#pragma once

#include "core/log.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/pipeline/changes.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/run/run_outcome.hpp"
#include "orchestrator/start/machine_rules.hpp"
#include "orchestrator/start/run_signals.hpp"

#include <filesystem>
#include <functional>

namespace temper::orchestrator {

/// Where simulated actors run. Auto: chosen by the hardware.
enum class DriverKind { Auto, InProcess, Rehearsal };

struct RunPlan {
  ResolvedPipeline pipeline;
  std::filesystem::path run_dir;  ///< Absolute.
  DriverKind driver = DriverKind::Auto;
  enum class From { Start, Checkpoint } from = From::Start;
  /// Where shared cores are reported; a command that shows many runs reports them elsewhere.
  enum class Warnings { OnScreen, InLog } warnings = Warnings::OnScreen;
  /// Writes the base checkpoint; empty: it is pretrained, or copied from model.path.
  std::function<Status(const std::filesystem::path& base)> make_base{};
  /// Changes the base checkpoint before the run starts; empty: it stays as it is.
  std::function<Status(const std::filesystem::path& base)> change_base{};
  std::vector<SettingChange> changes{};  ///< Resume: differences that prepare_run() found.
};

/// Path of temper-worker, beside temper.
std::filesystem::path worker_program();

bool is_simulated(const PipelineConfig& config);
/// Whether a real policy is trained at the times of simulated cards.
bool is_twin(const PipelineConfig& config);
/// Whether rewards are random numbers: simulated hardware, where no model is trained.
bool draws_rewards(const PipelineConfig& config);
TraceForm trace_form(const PipelineConfig& config);

/// Turns a write to a closed pipe into an error instead of a fatal signal.
void ignore_write_signals();
/// Raises the limit of file descriptors to what the run can need, up to the hard limit, because
/// ZeroMQ aborts the process when it gets none. Error Unavailable: the hard limit is too low.
Status provide_descriptors(const ResolvedPipeline& pipeline);
/// None for a plan that starts no processes.
Status provide_descriptors(const RunPlan& plan);

/// Whether the run to be resumed has already finished all its steps. Error: a changed setting is
/// not allowed to change.
Result<bool> has_nothing_to_do(const RunPlan& plan);

/// Whether the progress of pretraining is shown on stderr.
enum class PretrainLine { Shown, Quiet };
/// Prepares the run folder and locks it while the result lives. A resumed run may have changed
/// settings; they are reported on stderr and in `plan.changes`. Error: one of them is not allowed
/// to change, and all errors of prepare_resume(). `signals` are in phase Startup before and after;
/// null: the caller handles signals.
Result<RunLock> prepare_run(RunPlan& plan, PretrainLine shown, RunSignals* signals = nullptr);

/// Runs the pipeline to its end.
using RunDriver = std::function<RunOutcome()>;
/// Requires: prepare_run(). `observer` and `log` outlive it.
Result<RunDriver> make_driver(const RunPlan& plan, const RunObserver& observer, const Log& log);

/// Called after every step.
using OnUpdate = std::function<void(const RunMetrics&)>;
/// What to do with a run that the folder already holds.
enum class ExistingRun { Refuse, Resume };
/// Takes part in a run from before its first record to its end.
struct RunFollower {
  RunObserver observer;            ///< Called after the recorder.
  std::function<void()> on_begin;  ///< Records so far precede a resume.
  std::function<void(std::uint64_t log_hash)> on_end;
};
/// The arguments outlive the follower.
using FollowRun = std::function<RunFollower(const std::filesystem::path& run_dir,
                                            const PipelineConfig& config,
                                            RunRecorder& recorder,
                                            const Log& log)>;
/// Runs a pipeline without output to its summary. Errors: it could not start; the run in its folder
/// must not be there, is damaged, or is not one of this configuration; its files could not be
/// written.
Result<RunEnd> start_run_quietly(const PipelineConfig& config,
                                 ExistingRun existing,
                                 const OnUpdate& on_update,
                                 const FollowRun& follow = nullptr);

}  // namespace temper::orchestrator
