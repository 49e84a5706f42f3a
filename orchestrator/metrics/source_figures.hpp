// Figures of the sources of problems, per step.
#pragma once

#include "orchestrator/scheduler/state/commands.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// A source in the batch of a step.
struct SourceFigures {
  std::string name;
  std::uint64_t groups = 0;     ///< Of the batch.
  std::uint64_t responses = 0;  ///< Of these groups, without failed ones.
  double rewards = 0;           ///< Sum over these responses.
  std::uint64_t epoch = 0;      ///< Of its last draw.
  std::uint64_t set_aside = 0;  ///< Problems that were set aside then.
};

/// Follows the draws of a run.
class SourceCounts {
 public:
  void dispatch(GroupId group, const std::optional<Draw>& draw);
  /// The group is trained. `rewards`: of its responses that have not failed.
  void train(GroupId group, std::span<const double> rewards);
  void drop(GroupId group) { of_group_.erase(group); }
  /// The figures of the batch that was trained; the next batch begins. Empty for a run with one
  /// source that sets nothing aside.
  std::vector<SourceFigures> take(const ProblemPlan& plan);

 private:
  struct Batch {
    std::uint64_t groups = 0, responses = 0;
    double rewards = 0;
  };
  std::map<GroupId, std::uint32_t> of_group_;  ///< The source of each outstanding group.
  std::map<std::uint32_t, Draw> last_;         ///< By source.
  std::map<std::uint32_t, Batch> batch_;       ///< By source.
};

}  // namespace temper::orchestrator
