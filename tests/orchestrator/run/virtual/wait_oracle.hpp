// Derives from the records of a run, without code of the scheduler or the auditor, why each actor
// is idle. For runs without failures, evaluations and resumes, under the exact rule.
//
// What an idle actor lacks (docs/explanation/measures.md, 5.1), the first that holds:
//   engine     nothing: no work is left for it. Its role switch, while others have its cards. Its
//              weights, if they are missing, on the way, or older than what it could be given. The
//              trainer's demand, if the staleness rule admits a group. The staleness bound.
//   reference  cards, if responses wait to be scored and it may not score, or if responses that
//              were handed back wait for the cards of engines. Responses, if some are generated.
//              Nothing: no work is left. The staleness bound, or the trainer's demand, if it keeps
//              groups from being dispatched. Else what the engines lack: cards, or weights.
//   verifier   as a reference; it needs no cards itself.
//   trainer    cards, if its batch is complete. Groups, if some are not ready. Else dispatch.
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator::testing {

class WaitOracle {
 public:
  void feed(const Record& record);

  /// The first ones; each names record, actor, recorded and derived cause.
  const std::vector<std::string>& mismatches() const { return mismatches_; }
  std::uint64_t intervals() const { return intervals_; }
  /// Idle time by role and recorded cause, and the part of it in which another one was derived.
  struct Idle {
    Duration all{}, wrong{};
  };
  const std::map<std::pair<actors::RoleKind, WaitKind>, Idle>& idle() const { return idle_; }

 private:
  enum class Stage { Queued, Generating, Generated, Failed };
  struct Response {
    Stage stage = Stage::Queued;
    std::uint32_t engine = 0;  ///< If generating.
    bool scored = false, judged = false;
    std::uint64_t scoring = 0, judging = 0;  ///< Leases; 0: none.
  };
  struct OutstandingGroup {
    std::uint64_t v0 = 0;
    bool training = false;  ///< In the step in progress.
    bool promised = false;  ///< Its gradients were requested.
    std::map<std::uint64_t, Response> responses;
  };
  struct Actor {
    actors::RoleKind role{};
    bool shared = false;  ///< Its cards are those of other roles too.
    bool up = false, staging = false, kv = false, onboard = false, switching = false;
    bool away = false;  ///< Engine: others have its cards, or it is on its way back.
    std::optional<std::uint64_t> version;
    std::optional<command::Waiting> said;
  };
  struct Lease {
    std::uint32_t actor = 0;
    std::vector<std::uint64_t> responses;
  };
  /// How many responses are at which stage, and what the rule allows.
  struct Census {
    std::uint64_t queued = 0, generating = 0, to_score = 0, to_judge = 0, unready = 0;
    std::vector<std::uint64_t> busy;  ///< By actor: responses or leases.
    std::uint64_t needed = 0;         ///< Groups that the run still needs.
    bool admits = false;              ///< Another group under the published version.
    bool complete = false;            ///< A batch can be trained.
    bool away = false;                ///< Some engine's cards are with others.
    bool able = false;                ///< Some engine could generate for another group.
  };

  void on(const event::Started& e);
  void on(const event::ActorReady& e) { actors_[e.actor.value()].up = true; }
  void on(const event::Generated& e);
  void on(const event::ReferenceScored& e);
  void on(const event::Judged& e);
  void on(const event::Trained& e);
  void on(const event::Prepared&) { preparing_ = false; }
  void on(const event::WeightsCommitted& e);
  void on(const event::Switched& e);
  void on(const event::CheckpointSaved&) { saving_ = false; }
  template <class E>
  void on(const E&) {}

  void does(const command::Dispatch& c);
  void does(const command::ScoreReference& c);
  void does(const command::Judge& c);
  void does(const command::Train& c);
  void does(const command::Prepare& c);
  void does(const command::StageWeights& c) { actors_[c.actor.value()].staging = true; }
  void does(const command::Switch& c);
  void does(const command::SaveCheckpoint&) { saving_ = true; }
  void does(const command::Release& c) { groups_.erase(c.group.value()); }
  void does(const command::Waiting& c) { actors_[c.actor.value()].said = c; }
  void does(const command::Finish&) { finished_ = true; }
  template <class C>
  void does(const C&) {}

  Response* response(std::uint64_t id);
  static bool ready(const OutstandingGroup& group, bool scores);
  Census census() const;
  void count(Census& census) const;
  /// Invariant (I) at `step`, for these deadlines.
  bool feasible(std::vector<std::uint64_t> deadlines, std::uint64_t step) const;
  bool admits_another() const;
  bool batch_is_complete() const;
  bool scores() const;

  void compare();
  std::optional<WaitKind> expected(std::uint32_t id, const Census& census) const;
  WaitKind of_engine(const Actor& a, const Census& census) const;
  WaitKind of_scorer(const Census& census) const;

  SchedulerConfig config_;
  std::vector<Actor> actors_;
  std::map<std::uint64_t, OutstandingGroup> groups_;
  std::map<std::uint64_t, Lease> leases_;
  std::uint64_t version_ = 0, trained_ = 0;
  bool training_ = false, preparing_ = false, saving_ = false, finished_ = false;

  struct Open {
    WaitKind said{};
    bool wrong = false;
  };
  std::map<std::uint32_t, Open> open_;  ///< Idle actors since the last record.
  Time last_{};
  std::uint64_t current_ = 0, intervals_ = 0;
  std::map<std::pair<actors::RoleKind, WaitKind>, Idle> idle_;
  std::vector<std::string> mismatches_;
};

}  // namespace temper::orchestrator::testing
