// The part of an actor's busy time that was spent on an evaluation. An engine decodes, and a
// verifier judges, responses of training and evaluation at once and cannot tell them apart. So each
// span of an actor is divided in proportion to the responses of both kinds that it held meanwhile;
// the first part stands for the evaluation. Both parts sum to the span, to the nanosecond.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <unordered_map>
#include <vector>

namespace temper::orchestrator {

class EvaluationTime {
 public:
  /// Call for every record, in order, before asking about the spans that it reports.
  void feed(const Record& record);
  /// The span, or its two parts. Call for the spans of one actor in order.
  std::vector<actors::Span> divide(ActorId actor, const actors::Span& span);

 private:
  struct LoadChange {
    Time since{};
    std::int64_t training = 0, evaluation = 0;
  };
  struct Actor {
    std::vector<LoadChange> held{LoadChange{}};               ///< From the end of the last span on.
    std::unordered_map<std::uint64_t, std::int64_t> judging;  ///< Responses by lease.
  };
  void add(ActorId actor, Time now, LeaseId lease, std::int64_t responses);
  void end_judging(ActorId actor, Time now, LeaseId lease);
  void clear(ActorId actor, Time now);

  bool ever_ = false;  ///< Whether there was an evaluation; until then nothing is recorded.
  std::map<std::uint32_t, Actor> actors_;
};

}  // namespace temper::orchestrator
