// The memory that the processes of a run hold on each card, as they report it: with every heartbeat
// and after every action of a role switch. An actor with several cards counts evenly on each.
#pragma once

#include "core/units.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>

namespace temper::orchestrator {

class CardMemory {
 public:
  /// `limit`: of a card (placement.card_memory); 0: none.
  explicit CardMemory(Bytes limit) : limit_(limit) {}

  /// The process of an actor holds `resident` now. If one of its cards then exceeds the limit,
  /// returns which card it is and who holds the memory.
  std::optional<std::string> note(std::span<const ActorSpec> actors, ActorId actor, Bytes resident);
  /// "card 0 187.5 MiB, card 1 201.0 MiB": the peak of each.
  std::string peaks() const;

 private:
  double on_card(std::span<const ActorSpec> actors, CardId card) const;
  std::string holders(std::span<const ActorSpec> actors, CardId card) const;

  Bytes limit_;
  std::map<ActorId, Bytes> resident_;
  std::map<CardId, double> peaks_;
};

}  // namespace temper::orchestrator
