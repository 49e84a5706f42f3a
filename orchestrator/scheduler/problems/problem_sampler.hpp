// Draws the problem of each new group. Which source: in every prefix of the draws under constant
// weights, the number of draws of each source differs from its share by less than one (the
// earliest-deadline schedule of fair shares). Which problem: the next one in the order of its
// source that is not set aside.
//
// Decisions depend on the plan, the step, and the groups that have left the run, all of which the
// event log has. The state is a part of the scheduler's snapshot. Its size is that of the
// outstanding groups and of the problems that are set aside.
#pragma once

#include "core/ids.hpp"
#include "orchestrator/scheduler/problems/problem_plan.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

class ProblemSampler {
 public:
  /// Draws for a new group. `step`: the published version. Requires: the plan has sources. Cost: a
  /// look-up per problem that is set aside on the way, at most one pass over the source.
  Draw draw(const ProblemPlan& plan, GroupId group, std::uint64_t step);
  /// The group leaves the run. `pass_rate`: share of its judged responses that passed. A group that
  /// was not judged has none, and says nothing about its problem.
  void group_left(const ProblemPlan& plan, GroupId group, std::optional<double> pass_rate);

  /// The teacher of an outstanding group, as an index in TeacherPlan::names; 0 for a plan without
  /// teachers. None: the group has no problem.
  std::optional<std::uint32_t> teacher(const ProblemPlan& plan, GroupId group) const;

  /// Names what no run with this plan can have; empty: the state is plausible.
  std::string impossible_field(const ProblemPlan& plan) const;

  friend void describe(auto& v, ProblemSampler& s) {
    v.field(1, "sources", s.sources_);
    v.field(2, "outstanding", s.outstanding_);
  }

 private:
  struct Source {
    std::int64_t credit = 0;     ///< Share so far minus draws so far, in units of 1 / kOne draws.
    std::uint64_t position = 0;  ///< Of the next problem in the order of the source.
    /// Problems that are set aside, with the first epoch in which each may be drawn again.
    std::map<std::uint64_t, std::uint64_t> set_aside;
  };
  struct Drawn {
    std::uint32_t source = 0;
    std::uint64_t problem = 0;
    std::uint64_t epoch = 0;
  };
  friend void describe(auto& v, Source& s) {
    v.field(1, "credit", s.credit);
    v.field(2, "position", s.position);
    v.field(3, "set_aside", s.set_aside);
  }
  friend void describe(auto& v, Drawn& d) {
    v.field(1, "source", d.source);
    v.field(2, "problem", d.problem);
    v.field(3, "epoch", d.epoch);
  }

  std::size_t next_source(const ProblemPlan& plan, std::uint64_t step);

  std::vector<Source> sources_;  ///< Empty before the first draw.
  std::map<GroupId, Drawn> outstanding_;
};

}  // namespace temper::orchestrator
