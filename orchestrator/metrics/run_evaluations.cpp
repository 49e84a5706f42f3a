// RunMetrics: figures of evaluations.
#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

namespace temper::orchestrator {

/// Handles the events and commands of evaluations.
void RunMetrics::feed_evaluation(const Record& record) {
  if (const auto* resumed = std::get_if<event::Resumed>(&record.event)) {
    std::erase_if(evaluations_,
                  [&](const EvaluationResult& e) { return e.sequence > resumed->sequence; });
    evaluating_.reset();
  }
  for (const Command& command : record.commands) {
    if (const auto* evaluated = std::get_if<command::Evaluated>(&command)) {
      evaluations_.push_back({record.sequence, record.time, *evaluated});
      evaluating_.reset();
    } else if (const auto* dispatch = std::get_if<command::Dispatch>(&command)) {
      if (is_evaluation(dispatch->lease))
        evaluating_ = dispatch->version;
    }
  }
}

const command::Evaluated* RunMetrics::best_evaluation() const {
  const command::Evaluated* best = nullptr;
  for (const EvaluationResult& e : evaluations_) {
    if (best == nullptr || e.result.pass_1 > best->pass_1)
      best = &e.result;
  }
  return best;
}

}  // namespace temper::orchestrator
