// Admits workers to a run: verifies what a worker says of itself, binds its connection to an actor,
// and tells it its role.
#pragma once

#include "orchestrator/run/live/live_options.hpp"
#include "orchestrator/run/live/weight_sync.hpp"
#include "orchestrator/run/live/worker_clocks.hpp"
#include "orchestrator/run/processes/worker_source.hpp"
#include "orchestrator/run/role_configs.hpp"

namespace temper::orchestrator {

class WorkerAdmission {
 public:
  /// The references outlive this.
  WorkerAdmission(const LiveOptions& options,
                  RunCore& core,
                  ActorLinks& links,
                  WeightSync& weights,
                  WorkerClocks& clocks,
                  const RealClock& clock,
                  const Log& log);
  /// Workers that others start may attach through `attached`, which outlives this.
  void open_to(AttachedWorkers& attached) { attached_ = &attached; }
  /// The trainer starts from this checkpoint; an empty folder: from the base model.
  void start_from(std::filesystem::path checkpoint, PolicyVersion version);

  /// Engines may attach tensors to responses, which the trainer finds here.
  void put_tensors_in(actors::TensorPlace place) { start_.tensors = std::move(place); }

  void on_hello(const actors::PeerId& peer,
                const std::string& user,
                const actors::IncomingMessage& message);

 private:
  void attach(ActorId actor, const std::string& key, const actors::Hello& hello);
  actors::Welcome welcome_for(ActorId actor) const;
  void refuse(const actors::PeerId& peer, const actors::Hello& hello, const Error& why);

  const LiveOptions& options_;
  RunCore& core_;
  ActorLinks& links_;
  WeightSync& weights_;
  WorkerClocks& clocks_;
  const RealClock& clock_;
  const Log log_;
  AttachedWorkers* attached_ = nullptr;  ///< Null: this run starts all its workers.
  StartingPoint start_;
};

}  // namespace temper::orchestrator
