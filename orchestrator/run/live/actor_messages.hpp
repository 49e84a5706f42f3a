// What actors say: each message is validated against what its sender may say now
// (actors/protocol/permissions.hpp) before anything of it counts. A protocol violation costs the
// sender its place.
#pragma once

#include "orchestrator/run/live/card_memory.hpp"
#include "orchestrator/run/live/live_workers.hpp"
#include "orchestrator/run/live/weight_sync.hpp"
#include "orchestrator/run/live/work_exchange.hpp"
#include "orchestrator/run/live/worker_clocks.hpp"

namespace temper::orchestrator {

class ActorMessages {
 public:
  /// `card_memory`: the limit of a card (placement.card_memory); 0: none. The references outlive
  /// this.
  ActorMessages(RunCore& core,
                WorkExchange& work,
                WeightSync& weights,
                WorkerClocks& clocks,
                LiveWorkers& workers,
                Bytes card_memory);

  void receive(ActorId actor, const actors::IncomingMessage& message);
  /// The most memory that the processes of each card held.
  std::string card_memory_peaks() const { return card_memory_.peaks(); }

 private:
  Status handle(ActorId actor, const actors::IncomingMessage& message);
  Status handle_work(ActorId actor, const actors::IncomingMessage& message);
  void handle_heartbeat(ActorId actor, const actors::Heartbeat& beat);
  Status handle_plain(ActorId actor, Event said);
  void note_memory(ActorId actor, Bytes resident);

  RunCore& core_;
  WorkExchange& work_;
  WeightSync& weights_;
  WorkerClocks& clocks_;
  LiveWorkers& workers_;
  CardMemory card_memory_;
};

}  // namespace temper::orchestrator
