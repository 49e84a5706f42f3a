// The auditor's part on problems, with independent code: the problem of every new group is the next
// one of its source that is not set aside, what is set aside follows from the rewards of earlier
// groups, and no source gets more or less than its share.
#pragma once

#include "orchestrator/scheduler/problems/problem_plan.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace temper::orchestrator {

class ProblemAudit {
 public:
  using Violations = std::vector<std::string>;

  /// At the start of the run, and at a resume with another configuration.
  void use(const ProblemPlan& plan) { plan_ = plan; }
  /// A group is dispatched for the first time. `step`: the published version.
  Violations dispatch(const command::Dispatch& c, std::uint64_t step);
  /// The teacher of an outstanding group; none in a run without teachers.
  std::optional<std::uint32_t> teacher(std::uint64_t group) const;
  /// A group leaves. `rewards`: of the responses that did not fail, if all were judged.
  void leave(std::uint64_t group, const std::optional<std::vector<double>>& rewards);

 private:
  struct Source {
    std::uint64_t next = 0;  ///< Position of its next problem.
    double owed = 0;         ///< Its share so far minus its groups so far.
    /// First epoch in which a problem may be drawn again.
    std::map<std::uint64_t, std::uint64_t> aside;
  };
  struct Problem {
    std::size_t source = 0;
    std::uint64_t number = 0, epoch = 0;
  };
  void check_share(const command::Dispatch& c, std::uint64_t step, Violations& found);
  void check_order(const command::Dispatch& c, Violations& found);

  ProblemPlan plan_;
  std::vector<Source> sources_;  ///< Empty before the first group.
  std::map<std::uint64_t, Problem> outstanding_;
};

}  // namespace temper::orchestrator
