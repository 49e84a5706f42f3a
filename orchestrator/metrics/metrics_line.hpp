// One line of metrics.jsonl: what the figures of a step are computed from. metric_table.hpp has the
// figures. TensorBoard, Prometheus and the side-cars show them under the same names, with `/`
// between the parts (docs/how-to/watch.md).
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "orchestrator/metrics/update_history.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// The newest evaluation that finished since the previous line, of this or an earlier version.
struct EvaluationFigures {
  PolicyVersion step;  ///< The evaluated version.
  double pass_1 = 0, pass_k = 0, reward = 0;
  std::uint64_t problems = 0, samples = 0, failed = 0;
  double seconds = 0;
  double best = 0;                                    ///< Highest pass_1 so far.
  double pass_1_low = 0, pass_1_high = 0;             ///< 95 % interval, over problems.
  std::vector<command::Evaluated::Source> sources{};  ///< As in command::Evaluated.
};

/// Work of judges until a step and until the step before it.
struct JudgeFigures {
  actors::JudgeUsage now, before;
};

struct MetricsLine {
  Update update;
  std::uint64_t resumes = 0;
  std::uint64_t restarts = 0;
  std::map<actors::CardState, double> states;  ///< Shares of card time since the previous line.
  std::optional<EvaluationFigures> evaluation;
};

/// Calls `use` with the name and value of each figure of the line, in the order of the table.
void for_each_figure(const MetricsLine& line,
                     const std::function<void(std::string_view name, double value)>& use);

/// The line as it is in metrics.jsonl, without a line break.
std::string to_json_line(const MetricsLine& line);

void describe(auto& v, QueueDepth& q) {
  v.field(1, "generating", q.generating);
  v.field(2, "scoring", q.scoring);
  v.field(3, "ready", q.ready);
  v.field(4, "training", q.training);
}

}  // namespace temper::orchestrator
