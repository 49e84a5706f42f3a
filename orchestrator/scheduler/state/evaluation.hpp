// An evaluation in progress: a table of its own, in which every problem is a group of `samples`
// responses, all of one version. It does not count toward a batch, a bound or a credit of training.
#pragma once

#include "orchestrator/scheduler/problems/problem_plan.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"
#include "orchestrator/scheduler/state/commands.hpp"
#include "orchestrator/scheduler/state/settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

class Evaluation {
 public:
  Evaluation() = default;
  /// `problems`: the sources of the evaluated problems.
  explicit Evaluation(const EvaluationPlan& plan, const ProblemPlan& problems = {});

  /// Starts with every problem, under this version.
  void begin(PolicyVersion version, Time now);
  void end() { version_.reset(); }
  /// Empty while no evaluation is in progress.
  const std::optional<PolicyVersion>& version() const { return version_; }
  bool under_way() const { return version_.has_value(); }
  /// Some response is not generated yet.
  bool generates() const { return under_way() && to_generate_ > 0; }
  /// Some response waits for an engine.
  bool wants_engine() const { return under_way() && !table_.ready(Task::Generate).empty(); }
  /// Every response is judged, or has failed.
  bool complete() const;
  /// Requires: complete().
  command::Evaluated result(Time now) const;

  DistQueue& table() { return table_; }
  const DistQueue& table() const { return table_; }
  void generated() { --to_generate_; }

 private:
  std::vector<command::Evaluated::Source> sources_of(const command::Evaluated& whole) const;

  EvaluationPlan plan_;
  std::vector<std::string> names_;        ///< Of the sources.
  std::vector<std::uint32_t> source_of_;  ///< By number of the problem. Empty for one source.
  DistQueue table_;
  std::optional<PolicyVersion> version_;
  Time began_{};
  std::int64_t to_generate_ = 0;
};

}  // namespace temper::orchestrator
