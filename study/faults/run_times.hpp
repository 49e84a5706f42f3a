// What the parts of a run took, from its records before anything failed: how long an actor takes to
// start, an update, a checkpoint, and so on. The constants by which the same run is predicted with
// failures (played.hpp); nothing of them is fitted to what came later.
//
// Rates are those of an actor that has something to do: the time in which it owed anything, over
// what it did. What messages take is part of it.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <optional>
#include <vector>

namespace temper::study {

/// Means; seconds. 0: it did not happen.
struct RunTimes {
  std::map<actors::RoleKind, double> start;     ///< From its launch until an actor is ready.
  std::map<actors::RoleKind, double> response;  ///< A response: generated, scored, judged.
  std::map<actors::SwitchAction, double> switching;
  double update = 0, save = 0, stage = 0, commit = 0;
  double prompt_tokens = 0, response_tokens = 0;  ///< Of a response.
};

class TimesOfRun {
 public:
  /// To be called for every record, in order, until something fails.
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
  struct Owed {
    std::map<LeaseId, std::int64_t> responses;
    Time since{};
  };

  void on_event(const orchestrator::Record& record);
  void on_command(const orchestrator::Command& command, Time now);
  void owes(ActorId actor, LeaseId lease, std::size_t responses, Time now);
  void did(ActorId actor, LeaseId lease, std::int64_t responses, Time now);
  actors::RoleKind role_of(ActorId actor) const;

  std::vector<orchestrator::ActorSpec> actors_;
  std::map<ActorId, Time> launched_, staging_, committing_, switching_;
  std::map<ActorId, Owed> owed_;
  std::optional<Time> training_, saving_;
  std::map<actors::RoleKind, Mean> start_, response_;
  std::map<actors::SwitchAction, Mean> switch_;
  Mean update_, save_, stage_, commit_, prompt_, length_;
};

}  // namespace temper::study
