// Slot occupancy of the rollout engines, from the records of a run. A card is busy while its engine
// decodes, however few responses are left; this figure shows how few.
//
// Definition.
//   load       of an engine: responses dispatched to it (Dispatch) that it has neither returned nor
//              lost (Generated, Cancel, the end of its process)
//   occupancy  integral of the load over time, over slots (ActorSpec::concurrency) x time: over all
//              engines, either over the time in which each had a load, or over the wall time, with
//              the slots that existed at the time
// Responses that an engine has finished but not reported count as load. One owner, no threads.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <unordered_map>
#include <vector>

namespace temper::orchestrator {

class Slots {
 public:
  /// Call for every record, in order.
  void feed(const Record& record);

  /// Slots of all current engines.
  std::int64_t slots() const { return slots_; }
  /// Responses in engines.
  std::int64_t load() const { return load_; }
  /// Response-seconds over [0, until]. Requires: until is not before the last record.
  double response_seconds(Time until) const;
  /// Occupancy of [0, until]; 0 without engines.
  double over_wall(Time until) const;
  double while_serving(Time until) const;

 private:
  struct Engine {
    std::int64_t slots = 0;
    std::int64_t load = 0;
    Time since{};        ///< Begin of its current load.
    Duration serving{};  ///< Time with a load before `since`, with the current slots.
    double served = 0;   ///< Slots x time before that, with other numbers of slots.
  };
  void take_actors(const std::vector<ActorSpec>& actors);
  void give(ResponseId response, ActorId engine);
  void take_back(ResponseId response, ActorId engine);
  void lose(ActorId engine);
  void change_load(Engine& engine, std::int64_t to);
  void change_slots(Engine& engine, std::int64_t to);

  std::vector<Engine> engines_;                         ///< By actor; no slots: not an engine.
  std::unordered_map<std::uint64_t, ActorId> holders_;  ///< By response; never iterated in order.
  std::int64_t slots_ = 0;
  std::int64_t load_ = 0;
  double sum_ = 0;           ///< Response-seconds up to now_.
  double slot_seconds_ = 0;  ///< Slot-seconds up to slots_since_.
  Time slots_since_{};       ///< Last change of slots_.
  Time now_{};
};

}  // namespace temper::orchestrator
