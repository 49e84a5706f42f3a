// The auditor's part on evaluations, with code of its own: each one answers every problem as often
// as the run says, all under one version that was published; what was found follows from the
// rewards; nothing of it is trained (an update holds only groups that were dispatched for it).
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

class EvaluationAudit {
 public:
  using Violations = std::vector<std::string>;

  void start(const EvaluationPlan& plan) { plan_ = plan; }
  /// The run goes on from where this is of: an evaluation under way is begun anew.
  void resume(const EvaluationPlan& plan) {
    plan_ = plan;
    cancel();
  }
  /// Its process ends: nothing that it held is in force.
  void forget(ActorId actor);

  // --- Requires for all: it is of an evaluation. `published`: the newest version.
  Violations dispatch(const command::Dispatch& c, std::uint64_t published);
  void cancel() { responses_.clear(), leases_.clear(); }
  Violations generated(ActorId actor, const event::Generated::Item& item);
  Violations judge(const command::Judge& c);
  Violations judged(const event::Judged& e);
  Violations evaluated(const command::Evaluated& c);
  /// The run ended well after so many updates.
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
  struct Evaluated {
    std::uint64_t version = 0;
    double pass_1 = 0;
  };
  const Lease* granted(LeaseId lease, ActorId actor) const;

  EvaluationPlan plan_;
  PolicyVersion version_;  ///< Of the evaluation under way.
  std::map<ResponseId, Response> responses_;
  std::map<LeaseId, Lease> leases_;
  std::vector<Evaluated> evaluated_;
};

}  // namespace temper::orchestrator
