// The auditor's part on evaluations, with independent code: each evaluates every problem the
// configured number of times, under one published version; its result follows from the rewards;
// none of its responses is trained (a step has only groups that were dispatched for it).
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/scheduler/problems/problem_plan.hpp"
#include "orchestrator/scheduler/state/settings.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

class EvaluationAudit {
 public:
  using Violations = std::vector<std::string>;

  void start(const EvaluationPlan& plan, const ProblemPlan& problems) {
    plan_ = plan;
    problems_ = problems;
  }
  /// The run is resumed in this state: an unfinished evaluation starts again.
  void resume(const EvaluationPlan& plan, const ProblemPlan& problems) {
    start(plan, problems);
    cancel();
  }
  /// Voids what the actor holds, because its process ends.
  void forget(ActorId actor);

  // --- These require responses of an evaluation. `published`: the newest version.
  Violations dispatch(const command::Dispatch& c, std::uint64_t published);
  void cancel() { responses_.clear(), leases_.clear(); }
  Violations generated(ActorId actor, const event::Generated::Item& item);
  Violations judge(const command::Judge& c);
  Violations judged(const event::Judged& e);
  Violations evaluated(const command::Evaluated& c);
  /// The run finished with success after this many steps.
  Violations finish(std::uint64_t steps) const;

 private:
  struct Response {
    Tokens tokens;
    bool generated = false, judged = false, failed = false;
    double reward = 0;
  };
  struct Lease {
    ActorId actor;
    std::vector<ResponseId> responses;
  };
  struct EvaluatedVersion {
    std::uint64_t version = 0;
    double pass_1 = 0;
  };
  const Lease* granted(LeaseId lease, ActorId actor) const;
  Violations sources_of(const command::Evaluated& c) const;

  EvaluationPlan plan_;
  ProblemPlan problems_;
  PolicyVersion version_;  ///< Version of the current evaluation.
  std::map<ResponseId, Response> responses_;
  std::map<LeaseId, Lease> leases_;
  std::vector<EvaluatedVersion> evaluated_;
};

}  // namespace temper::orchestrator
