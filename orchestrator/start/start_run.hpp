// What running a pipeline takes, whoever watches it: what only this machine can tell of it, its
// folder, its driver. `temper run` shows one on the terminal; `temper compare` runs many, quietly.
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

/// Where simulated actors live. Auto: as the hardware wants it.
enum class DriverKind { Auto, InProcess, Rehearsal };

struct RunPlan {
  ResolvedPipeline pipeline;
  std::filesystem::path run_dir;  ///< Absolute.
  DriverKind driver = DriverKind::Auto;
  enum class From { Start, Checkpoint } from = From::Start;
  /// Where it is said that cores are shared: a command that shows many runs has one place for it.
  enum class Warnings { OnScreen, InLog } warnings = Warnings::OnScreen;
  /// Writes the base checkpoint; none: it is made, or copied from model.path.
  std::function<Status(const std::filesystem::path& base)> make_base{};
  std::vector<SettingChange> changes{};  ///< Of a run that is resumed: what prepare_run() found.
};

/// temper-worker lies beside temper.
std::filesystem::path worker_program();

bool is_simulated(const PipelineConfig& config);
/// A real policy, at the times of simulated cards.
bool is_twin(const PipelineConfig& config);
TraceForm trace_form(const PipelineConfig& config);

/// What cannot be written is an error where it is written, not the end of the process.
void ignore_write_signals();
/// As many file descriptors as the run can need, up to the hard limit; ZeroMQ ends the process when
/// it gets none.
Status provide_descriptors(const ResolvedPipeline& pipeline);

/// A run to be resumed that has ended well: there is nothing to go on with. Error: it was given
/// settings that may not change.
Result<bool> has_nothing_to_do(const RunPlan& plan);

/// Whether the making of a base checkpoint is shown on stderr.
enum class PretrainLine { Shown, Quiet };
/// Makes the run's folder ready, and ours alone for as long as the lock is held. A run to be
/// resumed may have other settings than it had; which, is said on stderr and in `plan.changes`.
/// Error: one of them may not change, and all errors of prepare_resume().
/// `signals` are in phase Startup before and after; null: the caller handles signals.
Result<RunLock> prepare_run(RunPlan& plan, PretrainLine shown, RunSignals* signals = nullptr);

/// Runs the pipeline to its end.
using RunDriver = std::function<RunOutcome()>;
/// Requires: prepare_run(). `observer` and `log` outlive it.
Result<RunDriver> make_driver(const RunPlan& plan, const RunObserver& observer, const Log& log);

/// Called after every update.
using OnUpdate = std::function<void(const RunMetrics&)>;
/// A whole run that nobody looks at, from its start to its summary. Error: it could not begin, or
/// its files could not be written.
Result<RunEnd> start_run_quietly(const PipelineConfig& config, const OnUpdate& on_update);

}  // namespace temper::orchestrator
