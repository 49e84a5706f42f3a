// Commands of the scheduler. A driver executes them in order and decides nothing.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"
#include "core/describe.hpp"
#include "orchestrator/scheduler/problems/problem_plan.hpp"
#include "orchestrator/scheduler/state/facts.hpp"

#include <variant>

namespace temper {
namespace orchestrator {

/// How a group left the queue.
enum class Outcome { Trained, Filtered, Failed, Evicted };

namespace command {

/// Start the actor's process. `reason`: why it is started again; nullopt the first time, and after
/// a Discard, which has it.
struct Launch {
  static constexpr std::string_view kName = "launch";
  ActorId actor;
  std::optional<Reason> reason{};
};
void describe(auto& v, Launch& c) {
  v.field(1, "actor", c.actor);
  v.field(3, "reason", c.reason);
}

/// End the actor's process and ignore its messages. A Launch follows, not before `until`. `reason`:
/// nullopt if it was removed and is added again before it ended.
struct Discard {
  static constexpr std::string_view kName = "discard";
  ActorId actor;
  std::optional<Reason> reason{};
  Time until{};
};
void describe(auto& v, Discard& c) {
  v.field(1, "actor", c.actor);
  v.field(3, "until", c.until);
  v.field(4, "reason", c.reason);
}

/// Generate these responses of one group.
struct Dispatch {
  static constexpr std::string_view kName = "dispatch";
  ActorId actor;
  LeaseId lease;
  GroupId group;
  PolicyVersion version;  ///< The engine's version at dispatch.
  std::vector<ResponseId> responses;
  /// Per response, the engine that caches its prefix; empty: no engine caches any.
  std::vector<std::optional<ActorId>> cached_on;
  /// The problem of a group that is dispatched for the first time; nullopt for others, and if the
  /// run draws no problems.
  std::optional<Draw> draw{};
};
void describe(auto& v, Dispatch& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "lease", c.lease);
  v.field(3, "group", c.group);
  v.field(4, "version", c.version);
  v.field(5, "responses", c.responses);
  v.field(6, "cached_on", c.cached_on);
  v.field(7, "draw", c.draw);
}

/// The result of this response is no longer needed.
struct Cancel {
  static constexpr std::string_view kName = "cancel";
  ActorId actor;
  ResponseId response;
};
void describe(auto& v, Cancel& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "response", c.response);
}

/// Return these responses with the tokens they have (Generated, interrupted); another engine
/// continues them. Has no effect on a response that has ended.
struct Withdraw {
  static constexpr std::string_view kName = "withdraw";
  ActorId actor;
  std::vector<ResponseId> responses;
};
void describe(auto& v, Withdraw& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "responses", c.responses);
}

struct ScoreReference {
  static constexpr std::string_view kName = "score_reference";
  ActorId actor;
  LeaseId lease;
  std::vector<ResponseId> responses;
};
void describe(auto& v, ScoreReference& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "lease", c.lease);
  v.field(3, "responses", c.responses);
}

struct Judge {
  static constexpr std::string_view kName = "judge";
  ActorId actor;
  LeaseId lease;
  std::vector<ResponseId> responses;
};
void describe(auto& v, Judge& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "lease", c.lease);
  v.field(3, "responses", c.responses);
}

/// One step on these groups; `responses` leaves out failed ones.
struct Train {
  static constexpr std::string_view kName = "train";
  ActorId actor;
  LeaseId lease;
  actors::Certificate certificate;
  std::vector<ResponseId> responses;
};
void describe(auto& v, Train& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "lease", c.lease);
  v.field(3, "certificate", c.certificate);
  v.field(4, "responses", c.responses);
}

/// Compute the gradients of these groups for the next step, which will contain them.
struct Prepare {
  static constexpr std::string_view kName = "prepare";
  ActorId actor;
  LeaseId lease;
  PolicyVersion step;
  std::vector<ResponseId> responses;
};
void describe(auto& v, Prepare& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "lease", c.lease);
  v.field(3, "step", c.step);
  v.field(4, "responses", c.responses);
}

struct StageWeights {
  static constexpr std::string_view kName = "stage_weights";
  ActorId actor;
  PolicyVersion version;
};
void describe(auto& v, StageWeights& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "version", c.version);
}

struct CommitWeights {
  static constexpr std::string_view kName = "commit_weights";
  ActorId actor;
  PolicyVersion version;
};
void describe(auto& v, CommitWeights& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "version", c.version);
}

struct Switch {
  static constexpr std::string_view kName = "switch";
  ActorId actor;
  actors::SwitchAction action = actors::SwitchAction::Interrupt;
  /// Onloading with `switching: one_by_one`: the engines whose cards the actor has from now on;
  /// empty: all of its cards.
  std::vector<ActorId> cards_of{};
};
void describe(auto& v, Switch& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "action", c.action);
  v.field(3, "cards_of", c.cards_of);
}

/// Save trainer and orchestrator state; answered by CheckpointSaved.
struct SaveCheckpoint {
  static constexpr std::string_view kName = "save_checkpoint";
  ActorId trainer;
  PolicyVersion version;
};
void describe(auto& v, SaveCheckpoint& c) {
  v.field(1, "trainer", c.trainer);
  v.field(2, "version", c.version);
}

/// The payload of this group is no longer needed.
struct Release {
  static constexpr std::string_view kName = "release";
  GroupId group;
  Outcome outcome = Outcome::Trained;
  std::optional<Reason> reason{};  ///< nullopt: it was trained.
};
void describe(auto& v, Release& c) {
  v.field(1, "group", c.group);
  v.field(2, "outcome", c.outcome);
  v.field(4, "reason", c.reason);
}

/// The actor was removed and has no work left: its worker ends. Answered by ActorDown.
struct Retire {
  static constexpr std::string_view kName = "retire";
  ActorId actor;
};
void describe(auto& v, Retire& c) {
  v.field(1, "actor", c.actor);
}

/// An evaluation is over: every problem was answered `samples` times under this version.
struct Evaluated {
  static constexpr std::string_view kName = "evaluated";
  /// A source of the evaluated problems. Figures as those of the whole.
  struct Source {
    std::string name;  ///< Key of `task.sources`.
    std::uint64_t problems = 0, passed = 0;
    double reward = 0, pass_1 = 0;
  };
  PolicyVersion version;
  Time began{};
  double seconds = 0;  ///< From then until now.
  std::uint64_t problems = 0, samples = 0;
  std::uint64_t failed = 0;  ///< Responses that were not generated or not judged: they do not pass.
  std::uint64_t passed = 0;  ///< Responses.
  std::uint64_t solved = 0;  ///< Problems of which a response passed.
  Tokens tokens;             ///< Of the responses.
  double reward = 0;         ///< Mean over responses; a failed one counts as 0.
  double pass_1 = 0;         ///< passed / (problems * samples)
  double pass_k = 0;         ///< solved / problems: pass@k for k = samples.
  bool best = false;         ///< Its pass_1 is above that of all before.
  std::vector<Source>
      sources;  ///< Empty: there is one, or the problems are in a file of their own.
};
void describe(auto& v, Evaluated::Source& s) {
  v.field(1, "name", s.name);
  v.field(2, "problems", s.problems);
  v.field(3, "passed", s.passed);
  v.field(4, "reward", s.reward);
  v.field(5, "pass_1", s.pass_1);
}
void describe(auto& v, Evaluated& c) {
  v.field(1, "version", c.version);
  v.field(2, "began", c.began);
  v.field(3, "seconds", c.seconds);
  v.field(4, "problems", c.problems);
  v.field(5, "samples", c.samples);
  v.field(6, "failed", c.failed);
  v.field(7, "passed", c.passed);
  v.field(8, "solved", c.solved);
  v.field(9, "tokens", c.tokens);
  v.field(10, "reward", c.reward);
  v.field(11, "pass_1", c.pass_1);
  v.field(12, "pass_k", c.pass_k);
  v.field(13, "best", c.best);
  v.field(14, "sources", c.sources);
}

/// From now on, while it is not busy, this actor is in this state for this cause.
struct Waiting {
  static constexpr std::string_view kName = "waiting";
  ActorId actor;
  actors::CardState state = actors::CardState::Idle;
  WaitCause cause{};
  bool operator==(const Waiting&) const = default;
};
void describe(auto& v, Waiting& c) {
  v.field(1, "actor", c.actor);
  v.field(2, "state", c.state);
  v.field(4, "cause", c.cause);
}

/// State that cannot be rebuilt is lost: stop every actor and resume from the last checkpoint.
struct Rollback {
  static constexpr std::string_view kName = "rollback";
  Reason reason;
};
void describe(auto& v, Rollback& c) {
  v.field(2, "reason", c.reason);
}

/// The run is over. `stopped`: at the user's request.
struct Finish {
  static constexpr std::string_view kName = "finish";
  bool ok = false;
  bool stopped = false;
  std::optional<Reason> reason{};  ///< nullopt: it is ok.
  std::optional<Reason> last{};    ///< Of the last of too many losses or failed groups.
};
void describe(auto& v, Finish& c) {
  v.field(1, "ok", c.ok);
  v.field(2, "stopped", c.stopped);
  v.field(4, "reason", c.reason);
  v.field(5, "last", c.last);
}

}  // namespace command

using Command = std::variant<command::Launch,
                             command::Dispatch,
                             command::Cancel,
                             command::ScoreReference,
                             command::Judge,
                             command::Train,
                             command::StageWeights,
                             command::CommitWeights,
                             command::Switch,
                             command::SaveCheckpoint,
                             command::Release,
                             command::Waiting,
                             command::Rollback,
                             command::Finish,
                             command::Withdraw,
                             command::Discard,
                             command::Prepare,
                             command::Evaluated,
                             command::Retire>;
using Commands = std::vector<Command>;

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::Outcome> {
  using O = orchestrator::Outcome;
  static constexpr std::array<std::pair<O, std::string_view>, 4> value{{{O::Trained, "trained"},
                                                                        {O::Filtered, "filtered"},
                                                                        {O::Failed, "failed"},
                                                                        {O::Evicted, "evicted"}}};
};

}  // namespace temper
