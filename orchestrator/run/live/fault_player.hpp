// Plays planned failures (run/fault_plan.hpp) on the processes of a run on this machine, at their
// times on the run's clock. A card is a core, and is its own host.
//   card, host, supernode   actors on these cards are killed (SIGKILL), and can start again once
//                           the cards are usable: after simulation.faults.repair, or .replacement
//   stop                    actors on the card are stopped for the length (SIGSTOP)
//   slow                    actors on the card work in one of several time slices (SIGSTOP,
//   SIGCONT) link                    messages of actors on the card are held for
//                           simulation.faults.link_repair, and no actor can start there
// It decides what happens to processes. The scheduler knows nothing of the plan and decides how the
// run reacts. All calls on the thread that runs the loop.
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
  /// Actions on an actor's process; without effect if there is none.
  struct Effects {
    std::function<void(ActorId, int number)> signal;
    std::function<void(ActorId)> mend;   ///< The link works again.
    std::function<void(ActorId)> start;  ///< The start was put off, and its cards are usable now.
    std::function<Time()> now;           ///< On the run's clock.
  };

  /// Null: nothing is planned. `io` outlives it. Error: as FaultPlan::create().
  static Result<std::unique_ptr<FaultPlayer>> create(boost::asio::io_context& io,
                                                     const ResolvedPipeline& pipeline,
                                                     Effects effects,
                                                     const Log& log);
  ~FaultPlayer();

  /// Plays the plan from here on. Earlier failures count as played (a resumed run).
  void begin();
  /// Nothing fails any more, and every stopped process continues.
  void end();

  /// Whether the actor's start is put off; then `start` is called for it, unless it is dropped.
  bool puts_off(ActorId actor);
  void drop(ActorId actor);
  /// Whether the actor's link is cut.
  bool is_cut(ActorId actor) const;

 private:
  struct Impl;
  explicit FaultPlayer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
