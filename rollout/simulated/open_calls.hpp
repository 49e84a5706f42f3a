// The tool calls of an engine's responses: those that tools work on, and those in line for a free
// one (`simulation.tools.pool`). Tools have hosts of their own, so a call continues while the cards
// of its engine change roles: an interrupted response takes the time of its answer along, and the
// engine that continues it waits only for the rest.
#pragma once

#include "actors/simulation/tool_calls.hpp"
#include "rollout/simulated/batch.hpp"

#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <vector>

namespace temper::rollout {

class OpenCalls {
 public:
  OpenCalls() = default;
  /// `pool`: calls that tools work on at once; 0: no limit. `tools` outlives this.
  OpenCalls(const actors::ToolCalls& tools, std::int64_t pool) : tools_(&tools), pool_(pool) {}

  using Answers = std::map<ResponseId, Time>;

  /// The calls have just been made. `under_way`: when tools answer those that another attempt made.
  void begin(const Batch& batch,
             const std::vector<Batch::Call>& calls,
             Time now,
             const Answers& under_way = {});
  /// When the next answer comes. It may be void: its response may have left.
  std::optional<Time> next() const;
  /// The call whose answer comes now; its tool is free for another. Requires: next() <= now.
  Batch::Call take(const Batch& batch, Time now);
  /// The response will never need an answer.
  void close(ResponseId response) { answers_.erase(response); }
  /// The response has its answer. An answer without tokens leaves no trace in the response, so an
  /// interrupted response still takes the time of such an answer along.
  void answered(const Batch::Call& call);
  /// Tells interrupted responses when their answers come.
  void hand_over(std::vector<Batch::FinishedResponse>& ended);
  /// Forgets finished responses.
  void forget(const std::vector<Batch::FinishedResponse>& ended);

 private:
  struct Open {
    Time answered{};
    Batch::Call call;
    bool own = true;  ///< By a tool of this engine.
    /// For a heap with the earliest answer on top, on ties the earlier call.
    bool operator<(const Open& o) const {
      return std::pair(answered, call.ticket()) > std::pair(o.answered, o.call.ticket());
    }
  };

  void wait_for(const Open& open);
  void give_to_tools(const Batch& batch, Time now);

  const actors::ToolCalls* tools_ = nullptr;
  std::int64_t pool_ = 0;
  std::int64_t busy_ = 0;            ///< Tools of this engine.
  std::priority_queue<Open> open_;   ///< Some void.
  std::deque<Batch::Call> in_line_;  ///< Some void.
  Answers answers_;                  ///< Of the responses here.
};

}  // namespace temper::rollout
