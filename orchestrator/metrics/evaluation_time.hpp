// Which part of an actor's busy time was for an evaluation. An engine decodes, and a verifier
// judges, responses of both kinds at once and does not know which are which. So a span of an actor
// is divided by the number of responses of either kind that it held meanwhile: the first part of
// the span stands for the evaluation. What both parts sum to is the span, to the nanosecond.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <unordered_map>
#include <vector>

namespace temper::orchestrator {

class EvaluationTime {
 public:
  /// To be called for every record, in order, before the spans that it tells of are asked about.
  void feed(const Record& record);
  /// The span, or its two parts. Spans of one actor are to be asked about in their order.
  std::vector<actors::Span> divide(ActorId actor, const actors::Span& span);

 private:
  struct Held {
    Time since{};
    std::int64_t training = 0, evaluation = 0;
  };
  struct Actor {
    std::vector<Held> held{Held{}};                           ///< From the end of the last span on.
    std::unordered_map<std::uint64_t, std::int64_t> judging;  ///< By lease: its responses.
  };
  void add(ActorId actor, Time now, LeaseId lease, std::int64_t responses);
  void end_judging(ActorId actor, Time now, LeaseId lease);
  void clear(ActorId actor, Time now);

  bool ever_ = false;  ///< There was an evaluation; until then nothing is kept.
  std::map<std::uint32_t, Actor> actors_;
};

}  // namespace temper::orchestrator
