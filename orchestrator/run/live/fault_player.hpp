// Plays planned failures (run/fault_plan.hpp) on the processes of a run on this machine, at their
// times on the run's clock. A card is a core, and a host of its own.
//   card, host, supernode   who is on these cards is killed (SIGKILL), and can start again once the
//                           cards can be used: after simulation.faults.repair, or .replacement
//   stop                    who is on the card stands still (SIGSTOP) for so long
//   slow                    works in only one of so many slices of time (SIGSTOP, SIGCONT)
//   link                    what is said to and by who is on the card is held for
//                           simulation.faults.link_repair, and nobody can start there
// It decides what happens to processes; what the run makes of it, the scheduler decides, which
// knows nothing of plans. All calls on the thread that runs the loop.
#pragma once

#include "core/log.hpp"
#include "orchestrator/run/fault_plan.hpp"

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace temper::orchestrator {

class FaultPlayer {
 public:
  /// What can be done to an actor's process; without effect where there is none.
  struct Hands {
    std::function<void(ActorId, int number)> signal;
    std::function<void(ActorId)> mend;   ///< Its link is there again.
    std::function<void(ActorId)> start;  ///< It was put off, and its cards can be used now.
    std::function<Time()> now;           ///< Of the run.
  };

  /// Null: nothing is planned. `io` outlives it. Error: as FaultPlan::create().
  static Result<std::unique_ptr<FaultPlayer>> create(boost::asio::io_context& io,
                                                     const ResolvedPipeline& pipeline,
                                                     Hands hands,
                                                     const Log& log);
  ~FaultPlayer();

  /// From here on it plays. What was due before counts as played, as of a run that is resumed.
  void begin();
  /// Nothing happens any more, and nobody stands still.
  void end();

  /// Whether the actor's start is put off; then `start` is called for it, unless it is dropped.
  bool puts_off(ActorId actor);
  void drop(ActorId actor);
  /// Whether nothing reaches the actor, and nothing that it says comes through.
  bool is_cut(ActorId actor) const;

 private:
  struct Impl;
  explicit FaultPlayer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
