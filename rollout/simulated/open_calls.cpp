#include "rollout/simulated/open_calls.hpp"

#include <algorithm>

namespace temper::rollout {

void OpenCalls::begin(const Batch& batch,
                      const std::vector<Batch::Call>& calls,
                      Time now,
                      const Answers& under_way) {
  for (const Batch::Call& call : calls) {
    if (const auto begun = under_way.find(call.response()); begun != under_way.end())
      wait_for({std::max(now, begun->second), call, false});
    else
      in_line_.push_back(call);
  }
  give_to_tools(batch, now);
}

std::optional<Time> OpenCalls::next() const {
  return open_.empty() ? std::nullopt : std::optional(open_.top().answered);
}

Batch::Call OpenCalls::take(const Batch& batch, Time now) {
  const Open open = open_.top();
  open_.pop();
  busy_ -= open.own ? 1 : 0;
  give_to_tools(batch, now);
  return open.call;
}

void OpenCalls::hand_over(std::vector<Batch::FinishedResponse>& ended) {
  for (Batch::FinishedResponse& item : ended) {
    if (item.finish != actors::FinishReason::Interrupted || item.answered)
      continue;
    if (const auto call = answers_.extract(item.response); !call.empty())
      item.answered = call.mapped();
  }
}

void OpenCalls::answered(const Batch::Call& call) {
  if (call.call().result > 0)
    answers_.erase(call.response());
}

void OpenCalls::forget(const std::vector<Batch::FinishedResponse>& ended) {
  if (answers_.empty())
    return;
  for (const Batch::FinishedResponse& item : ended) {
    if (item.finish == actors::FinishReason::End || item.finish == actors::FinishReason::Length)
      answers_.erase(item.response);
  }
}

void OpenCalls::wait_for(const Open& open) {
  answers_[open.call.response()] = open.answered;
  open_.push(open);
}

void OpenCalls::give_to_tools(const Batch& batch, Time now) {
  for (; !in_line_.empty() && (pool_ == 0 || busy_ < pool_); in_line_.pop_front()) {
    const Batch::Call& call = in_line_.front();
    if (!batch.is_open(call))
      continue;
    ++busy_;
    wait_for({now + tools_->latency(call.response(), call.call()), call});
  }
}

}  // namespace temper::rollout
