// Mean times of a run's operations, from its records before the first failure: actor start, update,
// checkpoint, and so on. They predict the same run with failures (fault_prediction.hpp); nothing is
// fitted to later records.
//
// Rates are those of a busy actor: the time in which it had pending work over the work that it did,
// including message handling.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <optional>
#include <vector>

namespace temper::study {

/// Means in seconds. 0: it did not happen.
struct RunTimes {
  std::map<actors::RoleKind, double> start;     ///< From launch to ready.
  std::map<actors::RoleKind, double> response;  ///< Per response: generated, scored or judged.
  std::map<actors::SwitchAction, double> switching;
  double update = 0, save = 0, stage = 0, commit = 0;
  double prompt_tokens = 0, response_tokens = 0;  ///< Per response.
};

class RunTimesReader {
 public:
  /// Call for every record, in order, until the first failure.
  void feed(const orchestrator::Record& record);
  RunTimes times() const;

 private:
  struct Mean {
    double sum = 0, count = 0;
    void add(double value, double times = 1) {
      sum += value;
      count += times;
    }
    double value() const { return count > 0 ? sum / count : 0; }
  };
  struct PendingWork {
    std::map<LeaseId, std::int64_t> responses;
    Time since{};
  };

  void on_event(const orchestrator::Record& record);
  void on_command(const orchestrator::Command& command, Time now);
  void add_pending(ActorId actor, LeaseId lease, std::size_t responses, Time now);
  void complete(ActorId actor, LeaseId lease, std::int64_t responses, Time now);
  actors::RoleKind role_of(ActorId actor) const;

  std::vector<orchestrator::ActorSpec> actors_;
  std::map<ActorId, Time> launched_, staging_, committing_, switching_;
  std::map<ActorId, PendingWork> pending_;
  std::optional<Time> training_, saving_;
  std::map<actors::RoleKind, Mean> start_, response_;
  std::map<actors::SwitchAction, Mean> switch_;
  Mean update_, save_, stage_, commit_, prompt_, length_;
};

}  // namespace temper::study
