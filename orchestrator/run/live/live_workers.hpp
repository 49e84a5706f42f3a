// The workers of a run on the wall clock: processes that it starts, and workers that others start
// and that attach. Launches them, notices their end, and ends them.
#pragma once

#include "orchestrator/run/live/fault_injection.hpp"
#include "orchestrator/run/live/live_options.hpp"
#include "orchestrator/run/live/weight_sync.hpp"
#include "orchestrator/run/live/worker_admission.hpp"
#include "orchestrator/run/processes/worker_source.hpp"

#include <map>
#include <memory>
#include <optional>

namespace temper::orchestrator {

class LiveWorkers {
 public:
  /// The references outlive this.
  LiveWorkers(const LiveOptions& options,
              boost::asio::io_context& io,
              RunCore& core,
              ActorLinks& links,
              FaultInjection& faults,
              WeightSync& weights,
              const Log& log);
  /// Workers come from here on. `ring`: the keys of workers that attach; nullopt: none may. Errors:
  /// see AttachedWorkers::open().
  Status open(std::optional<KeyRing> ring, WorkerAdmission& admission);

  void execute(const command::Launch& c);
  void execute(const command::Discard& c);
  void execute(const command::Retire& c);

  /// The worker is of no use any more: no message of it counts, and its process ends.
  void lose(ActorId actor, const WorkerEnd& end);
  /// The same, after a protocol violation.
  void lose_violator(ActorId actor, const Error& violation);
  /// The connection of a worker broke.
  void on_broken(ActorId actor, const actors::PeerId& peer, const std::string& why);
  /// A worker that attached says that it leaves.
  void on_left(ActorId actor) { attached_->left(actor); }
  void lose_silent(Duration timeout, Time now);
  /// Ends workers that were told to end and have not. To be called now and then.
  void end_overdue(Time now);
  /// Processes that have not connected and use the processor are loading: their programs, libraries
  /// and packages. To be called now and then.
  void note_loading();
  /// Applies keys that were made or revoked. Error: the run has another orchestrator.
  Status follow_keys(Time now);
  bool may_attach() const { return attached_ != nullptr; }

  /// An actor after the others, or one that the run has again.
  void add(ActorId actor, const actors::EngineConfig& engine);
  void actors_changed();

  /// All workers end at once, before a rollback.
  void end_all();
  /// The run is over: workers say their last and end; then the loop stops.
  void begin_end(bool ok, Duration grace);

  // --- For fault injection.
  void signal(ActorId actor, int number) { launched_->signal(actor, number); }
  void start_put_off(ActorId actor) { launched_->start_put_off(actor); }

 private:
  LaunchedWorkers::Plan launch_plan();
  WorkerSource& source_of(ActorId actor);
  void dismiss(ActorId actor);
  void on_end(ActorId actor, WorkerEnd end);
  void stop_loop_if_none_left();

  const LiveOptions& options_;
  boost::asio::io_context& io_;
  RunCore& core_;
  ActorLinks& links_;
  FaultInjection& faults_;
  WeightSync& weights_;
  const Log log_;
  std::unique_ptr<LaunchedWorkers> launched_;
  std::unique_ptr<AttachedWorkers> attached_;  ///< Null: this run starts all its workers.
  std::map<ActorId, Time> ending_;             ///< Told to end, and until when.
  std::map<ActorId, Duration> processor_;      ///< Used by processes that have not connected.
};

}  // namespace temper::orchestrator
