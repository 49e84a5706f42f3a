#include "orchestrator/metrics/evaluation_time.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Number of changes after which the history of an actor that reports no time is dropped.
constexpr std::size_t kMostChanges = 1 << 16;

}  // namespace

void EvaluationTime::feed(const Record& record) {
  if (const SchedulerConfig* config = config_in(record.event))
    ever_ = ever_ || config->evaluation.every > 0;
  if (!ever_)
    return;
  const Time now = record.time;
  if (const auto* generated = std::get_if<event::Generated>(&record.event)) {
    for (const auto& item : generated->items)
      add(generated->actor, now, item.lease, -1);
  } else if (const auto* judged = std::get_if<event::Judged>(&record.event)) {
    end_judging(judged->actor, now, judged->lease);
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    for (auto& [id, actor] : actors_)
      clear(ActorId(id), now);
  }
  for (const Command& command : record.commands) {
    if (const auto* dispatch = std::get_if<command::Dispatch>(&command)) {
      add(dispatch->actor, now, dispatch->lease, std::ssize(dispatch->responses));
    } else if (const auto* judge = std::get_if<command::Judge>(&command)) {
      actors_[judge->actor.value()].judging[judge->lease.value()] = std::ssize(judge->responses);
      add(judge->actor, now, judge->lease, std::ssize(judge->responses));
    } else if (const auto* cancel = std::get_if<command::Cancel>(&command)) {
      const bool evaluation = is_evaluation(cancel->response);
      add(cancel->actor, now, LeaseId(evaluation ? kFirstEvaluation : 0), -1);
    } else if (const auto* launch = std::get_if<command::Launch>(&command)) {
      clear(launch->actor, now);
    } else if (const auto* discard = std::get_if<command::Discard>(&command)) {
      clear(discard->actor, now);
    } else if (const auto* retire = std::get_if<command::Retire>(&command)) {
      clear(retire->actor, now);
    }
  }
}

void EvaluationTime::add(ActorId actor, Time now, LeaseId lease, std::int64_t responses) {
  std::vector<LoadChange>& held = actors_[actor.value()].held;
  if (held.back().since < now)
    held.push_back({now, held.back().training, held.back().evaluation});
  std::int64_t& count = is_evaluation(lease) ? held.back().evaluation : held.back().training;
  count = std::max<std::int64_t>(0, count + responses);  // Late answers for removed work.
  if (held.size() > kMostChanges)
    held.erase(held.begin(), held.begin() + kMostChanges / 2);
}

void EvaluationTime::end_judging(ActorId actor, Time now, LeaseId lease) {
  auto& judging = actors_[actor.value()].judging;
  const auto it = judging.find(lease.value());
  if (it == judging.end())
    return;
  add(actor, now, lease, -it->second);
  judging.erase(it);
}

void EvaluationTime::clear(ActorId actor, Time now) {
  Actor& a = actors_[actor.value()];
  a.judging.clear();
  a.held.push_back({now, 0, 0});
}

std::vector<actors::Span> EvaluationTime::divide(ActorId actor, const actors::Span& span) {
  using S = actors::CardState;
  const bool divides =
      span.state == S::Decode || span.state == S::Prefill || span.state == S::Reward;
  const auto found = actors_.find(actor.value());
  if (!ever_ || !divides || found == actors_.end() || span.end <= span.begin)
    return {span};
  std::vector<LoadChange>& held = found->second.held;
  // A span may end in the event that reports it, so a change at its end applies after it.
  double evaluation = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const Time begin = std::max(span.begin, held[i].since);
    const Time end = std::min(span.end, i + 1 < held.size() ? held[i + 1].since : span.end);
    const std::int64_t all = held[i].training + held[i].evaluation;
    if (end > begin && all > 0) {
      evaluation += static_cast<double>((end - begin).count()) *
                    static_cast<double>(held[i].evaluation) / static_cast<double>(all);
    }
  }
  std::size_t past = 0;
  while (past + 1 < held.size() && held[past + 1].since <= span.end)
    ++past;
  held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(past));
  const Time cut = std::min(span.end, span.begin + Duration(static_cast<std::int64_t>(evaluation)));
  std::vector<actors::Span> parts;
  if (cut > span.begin)
    parts.push_back({S::Evaluate, span.begin, cut});
  if (cut < span.end)
    parts.push_back({span.state, cut, span.end});
  return parts;
}

}  // namespace temper::orchestrator
