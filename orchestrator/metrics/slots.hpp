// How full the rollout engines were, from the records of a run. A card is busy while its engine
// decodes, however few responses are left; this figure says how few.
//
// Definition.
//   load       of an engine: responses that it was given (Dispatch) and has neither handed back nor
//              lost (Generated, Cancel, the end of its process)
//   occupancy  the load over time, added up, over slots (ActorSpec::concurrency) x time: of all
//              engines, over the time in which each had a load, or over the wall time, with the
//              slots that there were at the time
// What an engine keeps to itself before it reports counts as load. One owner, no threads.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <unordered_map>
#include <vector>

namespace temper::orchestrator {

class Slots {
 public:
  /// To be called for every record, in order.
  void feed(const Record& record);

  /// Of all engines that are there now.
  std::int64_t slots() const { return slots_; }
  /// Responses in engines now.
  std::int64_t load() const { return load_; }
  /// Response-seconds until then. Requires: not before the last record.
  double response_seconds(Time until) const;
  /// Occupancy of [0, until]; 0 without engines.
  double over_wall(Time until) const;
  double while_serving(Time until) const;

 private:
  struct Engine {
    std::int64_t slots = 0;
    std::int64_t load = 0;
    Time since{};        ///< It has a load.
    Duration serving{};  ///< Before `since`, with these slots.
    double served = 0;   ///< Slots x time before, with others.
  };
  void take_actors(const std::vector<ActorSpec>& actors);
  void give(ResponseId response, ActorId engine);
  void take_back(ResponseId response, ActorId engine);
  void lose(ActorId engine);
  void change_load(Engine& engine, std::int64_t to);
  void change_slots(Engine& engine, std::int64_t to);

  std::vector<Engine> engines_;                         ///< By actor; no slots: no engine.
  std::unordered_map<std::uint64_t, ActorId> holders_;  ///< By response; never iterated in order.
  std::int64_t slots_ = 0;
  std::int64_t load_ = 0;
  double sum_ = 0;           ///< Response-seconds until now_.
  double slot_seconds_ = 0;  ///< Until slots_since_,
  Time slots_since_{};       ///< since when there are so many.
  Time now_{};
};

}  // namespace temper::orchestrator
