#include "orchestrator/record/sentences.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

std::string name_of_actor(ActorId id, const std::vector<ActorSpec>& actors) {
  return id.value() < actors.size() ? actors[id.value()].name : fmt::format("actor {}", id);
}

std::uint64_t number(const std::optional<PolicyVersion>& version) {
  return version ? version->value() : 0;
}

std::string with_detail(const std::string& text, const std::string& detail) {
  return detail.empty() ? text : text + ": " + detail;
}

/// "generate 3 responses of an evaluation".
std::string request_text(std::string_view verb, const Reason& r) {
  return fmt::format("{} {} {}{}",
                     verb,
                     r.count,
                     r.count == 1 ? "response" : "responses",
                     r.evaluation ? " of an evaluation" : "");
}

std::string deadline_text(const Reason& r) {
  using K = DeadlineKind;
  const std::string limit = to_text(r.limit);
  const auto within = [&](std::string_view what, std::string_view key) {
    return fmt::format("did not {} within {} (deadlines.{})", what, limit, key);
  };
  switch (r.deadline.value_or(K::Start)) {
    case K::Start:
      return within("start", "start");
    case K::LongestStart:
      return fmt::format(
          "did not start within {}, though it reported progress; raise deadlines.start", limit);
    case K::StageWeights:
      return within(fmt::format("stage weights of version {}", number(r.version)), "weights");
    case K::CommitWeights:
      return within(fmt::format("commit weights of version {}", number(r.version)), "weights");
    case K::Switch:
      return within(fmt::format("complete {}", r.action ? name_of(*r.action) : "a role switch"),
                    "switching");
    case K::Generate:
      return within(request_text("generate", r), "generate");
    case K::Reference:
      return within(request_text("score", r), "reference");
    case K::Reward:
      return within(request_text("judge", r), "reward");
    case K::Train:
      return within(request_text("train on", r), "train");
    case K::Checkpoint:
      return within("save a checkpoint", "checkpoint");
    case K::Drain:
      return fmt::format(
          "stopped on request, but the current step did not end within {} (deadlines.drain)",
          limit);
  }
  return {};
}

std::string left_text(const Reason& r) {
  return fmt::format("only {} of its {} responses are left", r.count, r.of);
}

/// Without the name of the actor. Some texts are complete sentences about the actor.
std::string text_of(const Reason& r, const std::string& actor) {
  using K = ReasonKind;
  switch (r.kind) {
    case K::WorkerLost:
      return r.detail.empty() ? "its worker ended" : r.detail;
    case K::ProtocolViolation:
      return with_detail("protocol violation", r.detail);
    case K::DeadlinePassed:
      return deadline_text(r);
    case K::WeightsNotStaged:
      return with_detail("could not stage weights", r.detail);
    case K::WeightsRefused:
      return with_detail("could not commit weights", r.detail);
    case K::SwitchFailed:
      return with_detail(fmt::format("{} failed", r.action ? name_of(*r.action) : "a role switch"),
                         r.detail);
    case K::EqualRewards:
      return "all its rewards are equal";
    case K::TooOld:
      return "older than the staleness bound allows";
    case K::NotGenerated:
      return with_detail(left_text(r) + "; the last failure was in generation", r.detail);
    case K::NotScored:
      return with_detail(left_text(r) + "; the last failure was in scoring", r.detail);
    case K::NotJudged:
      return with_detail(left_text(r) + "; the last failure was in judging", r.detail);
    case K::StopRequested:
      return "stopped on request";
    case K::StoppedBeforeEvaluation:
      return "stopped on request, before the last version was evaluated";
    case K::WrongWeights:
      return fmt::format(
          "started with weights of version {}, expected version {}; check that the checkpoint "
          "folder is complete",
          number(r.version),
          number(r.expected));
    case K::TooManyLosses:
      return fmt::format("was lost {} times", r.count);
    case K::TooManyFailedGroups:
      return fmt::format("{} groups failed since the last step (algorithm.failure_limit)", r.count);
    case K::NobodyAttached:
      return fmt::format(
          "no worker attached as {0} and became ready within {1} (deadlines.attach), and the "
          "run has no other actor of this role; start one with: temper worker --connect "
          "RUN_DIR/endpoint --key RUN_DIR/keys/NAME.key --slot {0}",
          actor,
          to_text(r.limit));
    case K::OptimizerRefused:
      return with_detail("could not load the optimizer from host memory", r.detail);
    case K::CheckpointFailed:
      return with_detail(fmt::format("could not save the checkpoint of step {}", number(r.version)),
                         r.detail);
    case K::Aborted:
      return r.detail;
    case K::CannotStart:
      return with_detail("cannot start", r.detail);
    case K::VerifierNeverWorked:
      return with_detail("the verifier has not returned a single reward", r.detail);
  }
  return {};
}

/// True for "rollout-0 was lost 4 times", false for "trainer: killed by signal 9".
bool begins_with_verb(const Reason& r) {
  using K = ReasonKind;
  return r.kind == K::TooManyLosses || r.kind == K::WrongWeights || r.kind == K::CannotStart ||
         (r.kind == K::DeadlinePassed && r.deadline != DeadlineKind::Drain);
}

}  // namespace

std::string sentence(const WaitCause& c) {
  using K = WaitKind;
  switch (c.kind) {
    case K::Work:
      return {};
    case K::Removed:
      return "removed from the run";
    case K::RestartPause:
      return "pause before a restart";
    case K::StartSlot:
      return "a free start slot";
    case K::Start:
      return "worker start";
    case K::Restart:
      return "worker restart";
    case K::RoleSwitch:
      return fmt::format("role switch{}{}",
                         c.action ? fmt::format(" ({})", name_of(*c.action)) : "",
                         c.phase ? fmt::format(" ({})", name_of(*c.phase)) : "");
    case K::Checkpoint:
      return "checkpoint";
    case K::Evaluation:
      return c.version ? fmt::format("evaluation of version {}", *c.version) : "evaluation";
    case K::EndOfRun:
      return "end of run";
    case K::Dispatch:
      return c.needed > 0
                 ? fmt::format("groups not dispatched yet, {} of {} ready", c.ready, c.needed)
                 : "groups not dispatched yet";
    case K::Groups:
      return c.group ? fmt::format("groups: {} (v0 {}) and others, {} of {} ready",
                                   *c.group,
                                   number(c.version),
                                   c.ready,
                                   c.needed)
                     : "groups";
    case K::Weights:
      return "new weights";
    case K::StalenessBound:
      return "throttled by the staleness bound";
    case K::TrainerDemand:
      return "held back until the trainer needs it";
    case K::Responses:
      return "responses";
    case K::SharedCards:
      return "a turn on the time-shared cards";
  }
  return {};
}

std::string sentence(const Reason& reason, const std::vector<ActorSpec>& actors) {
  const std::string actor = reason.actor ? name_of_actor(*reason.actor, actors) : std::string();
  std::string text = text_of(reason, actor);
  if (actor.empty() || reason.kind == ReasonKind::NobodyAttached ||
      reason.kind == ReasonKind::VerifierNeverWorked)
    return text;
  return actor + (begins_with_verb(reason) ? " " : ": ") + text;
}

std::string sentence(const std::optional<Reason>& reason, const std::vector<ActorSpec>& actors) {
  return reason ? sentence(*reason, actors) : std::string();
}

RunEnd end_of(const command::Finish& finish, const std::vector<ActorSpec>& actors) {
  RunEnd end{finish.ok, finish.stopped, sentence(finish.reason, actors)};
  if (finish.last) {
    const std::string group = finish.reason && finish.reason->group
                                  ? fmt::format("group {}: ", *finish.reason->group)
                                  : "";
    end.reason += "; last: " + group + sentence(*finish.last, actors);
  }
  return end;
}

}  // namespace temper::orchestrator
