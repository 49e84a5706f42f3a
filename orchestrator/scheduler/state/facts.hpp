// Why an actor waits, why it was lost, why a group left and why a run ended: the facts that
// commands carry. They are types; orchestrator/record/sentences.hpp turns them into English.
//
// Enumerators are numbers in events.log. Append new ones; never reorder or reuse them. A change
// that makes recorded commands differ needs another log format (orchestrator/record/log_files.hpp).
#pragma once

#include "actors/protocol/weights.hpp"
#include "core/describe.hpp"

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace temper {
namespace orchestrator {

/// States of a role switch; role_switch.hpp lists the transitions.
enum class SwitchPhase {
  Separate,
  Train,
  DrainTrain,
  OffloadOptimizer,
  Reshard,
  Bind,
  KvAlloc,
  Rollout,
  CutRoute,
  Interrupt,
  FreeKv,
  OffloadWeights,
  OnloadReference,
  Score,
  OffloadReference,
  Onload
};

enum class WaitKind {
  Work,            ///< None: it was given work.
  Removed,         ///< It was removed from the run.
  RestartPause,    ///< The pause before its next start.
  StartSlot,       ///< Other workers start; it is not its turn.
  Start,           ///< Its worker starts.
  Restart,         ///< It was lost, and has not been started again.
  RoleSwitch,      ///< `action`: its own; `phase`: what the switch is at. The trainer: its cards.
  Checkpoint,      ///< The trainer saves.
  Evaluation,      ///< `version`: the one under evaluation, where that holds up training.
  EndOfRun,        ///< Nothing is left to do.
  Dispatch,        ///< The trainer: groups that were not dispatched yet.
  Groups,          ///< The trainer: `group` (dispatched at `version`) and others.
  Weights,         ///< New weights: its own, or those of the engines that generate for it.
  StalenessBound,  ///< The rule admits no group.
  TrainerDemand,   ///< The rule admits a group; just-in-time admission holds it back.
  Responses,       ///< A reference or a verifier: responses that are generated now.
  SharedCards,     ///< A reference or a verifier: another role has its cards, or the engines'.
};

/// What an actor that is not busy waits for.
struct WaitCause {
  WaitKind kind = WaitKind::Work;
  std::optional<GroupId> group{};
  std::optional<PolicyVersion> version{};
  std::uint64_t ready = 0;   ///< Groups of the next update that are ready or promised.
  std::uint64_t needed = 0;  ///< Groups of an update.
  std::optional<actors::SwitchAction> action{};
  std::optional<SwitchPhase> phase{};

  /// What waits of one kind have in common: without group, version and counts.
  WaitCause without_instance() const {
    return {kind, std::nullopt, std::nullopt, 0, 0, action, phase};
  }
  auto operator<=>(const WaitCause&) const = default;
};
void describe(auto& v, WaitCause& c) {
  v.field(1, "kind", c.kind);
  v.field(2, "group", c.group);
  v.field(3, "version", c.version);
  v.field(4, "ready", c.ready);
  v.field(5, "needed", c.needed);
  v.field(6, "action", c.action);
  v.field(7, "phase", c.phase);
}

/// A key of `deadlines`, or the step that it limits.
enum class DeadlineKind {
  Start,
  StageWeights,
  CommitWeights,
  Switch,
  Generate,
  Reference,
  Reward,
  Train,
  Checkpoint,
  Drain,
  LongestStart  ///< Of a worker that reports progress: a multiple of `deadlines.start`.
};

enum class ReasonKind {
  // An actor was lost.
  WorkerLost,         ///< `detail`: what its driver reports.
  ProtocolViolation,  ///< `detail`: the message and what is wrong with it.
  DeadlinePassed,     ///< `deadline`, `limit`; `count`: responses it owed; also ends a run.
  WeightsNotStaged,   ///< `detail`
  WeightsRefused,     ///< `detail`
  SwitchFailed,       ///< `action`, `detail`
  // A group left untrained.
  EqualRewards,
  TooOld,
  NotGenerated,  ///< `count` of its `of` responses are left; `detail`: what the engine reports.
  NotJudged,     ///< The same; `detail`: the verifier's words on the last one.
  // The run ended, or goes back to a checkpoint.
  StopRequested,
  StoppedBeforeEvaluation,  ///< Stopped on request, with an evaluation to be made.
  WrongWeights,             ///< The trainer has `version`, the run is at `expected`.
  TooManyLosses,            ///< `count` in a row.
  TooManyFailedGroups,      ///< `count` without an update; the last one is `group`.
  NobodyAttached,           ///< Within `limit`.
  OptimizerRefused,         ///< `detail`
  CheckpointFailed,         ///< Of `version`; `detail`
  Aborted,                  ///< By the driver; `detail`
  CannotStart,              ///< Another start would fail likewise; `detail`
  NotScored,                ///< A group left untrained, as NotGenerated; `detail`
  VerifierNeverWorked,      ///< No reply of it was ever a reward; `detail`: the last one.
};

struct Reason {
  ReasonKind kind = ReasonKind::WorkerLost;
  std::optional<ActorId> actor{};  ///< Where the command does not name it.
  std::optional<GroupId> group{};
  std::optional<PolicyVersion> version{};
  std::optional<PolicyVersion> expected{};
  std::optional<DeadlineKind> deadline{};
  std::optional<actors::SwitchAction> action{};
  Duration limit{};
  std::uint64_t count = 0, of = 0;
  bool evaluation = false;  ///< The responses are those of an evaluation.
  std::string detail{};     ///< Text from outside the scheduler, at most kMostDetail bytes.

  static constexpr std::size_t kMostDetail = 4096;
  bool operator==(const Reason&) const = default;
};
void describe(auto& v, Reason& r) {
  v.field(1, "kind", r.kind);
  v.field(2, "actor", r.actor);
  v.field(3, "group", r.group);
  v.field(4, "version", r.version);
  v.field(5, "expected", r.expected);
  v.field(6, "deadline", r.deadline);
  v.field(7, "action", r.action);
  v.field(8, "limit", r.limit);
  v.field(9, "count", r.count);
  v.field(10, "of", r.of);
  v.field(11, "evaluation", r.evaluation);
  v.field(12, "detail", r.detail);
}

/// A reason with text from outside, cut to kMostDetail bytes where that does not split a character.
Reason reason_with(ReasonKind kind, std::string_view detail);

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::SwitchPhase> {
  using P = orchestrator::SwitchPhase;
  static constexpr std::array<std::pair<P, std::string_view>, 16> value{
      {{P::Separate, "separate"},
       {P::Train, "train"},
       {P::DrainTrain, "drain_train"},
       {P::OffloadOptimizer, "offload_optimizer"},
       {P::Reshard, "reshard"},
       {P::Bind, "bind"},
       {P::KvAlloc, "kv_alloc"},
       {P::Rollout, "rollout"},
       {P::CutRoute, "cut_route"},
       {P::Interrupt, "interrupt"},
       {P::FreeKv, "free_kv"},
       {P::OffloadWeights, "offload_weights"},
       {P::OnloadReference, "onload_reference"},
       {P::Score, "score"},
       {P::OffloadReference, "offload_reference"},
       {P::Onload, "onload"}}};
};

template <>
struct EnumNames<orchestrator::WaitKind> {
  using K = orchestrator::WaitKind;
  static constexpr std::array<std::pair<K, std::string_view>, 17> value{
      {{K::Work, "work"},
       {K::Removed, "removed"},
       {K::RestartPause, "restart_pause"},
       {K::StartSlot, "start_slot"},
       {K::Start, "start"},
       {K::Restart, "restart"},
       {K::RoleSwitch, "role_switch"},
       {K::Checkpoint, "checkpoint"},
       {K::Evaluation, "evaluation"},
       {K::EndOfRun, "end_of_run"},
       {K::Dispatch, "dispatch"},
       {K::Groups, "groups"},
       {K::Weights, "weights"},
       {K::StalenessBound, "staleness_bound"},
       {K::TrainerDemand, "trainer_demand"},
       {K::Responses, "responses"},
       {K::SharedCards, "shared_cards"}}};
};

template <>
struct EnumNames<orchestrator::DeadlineKind> {
  using K = orchestrator::DeadlineKind;
  static constexpr std::array<std::pair<K, std::string_view>, 11> value{
      {{K::Start, "start"},
       {K::StageWeights, "stage_weights"},
       {K::CommitWeights, "commit_weights"},
       {K::Switch, "switch"},
       {K::Generate, "generate"},
       {K::Reference, "reference"},
       {K::Reward, "reward"},
       {K::Train, "train"},
       {K::Checkpoint, "checkpoint"},
       {K::Drain, "drain"},
       {K::LongestStart, "longest_start"}}};
};

template <>
struct EnumNames<orchestrator::ReasonKind> {
  using K = orchestrator::ReasonKind;
  static constexpr std::array<std::pair<K, std::string_view>, 22> value{
      {{K::WorkerLost, "worker_lost"},
       {K::ProtocolViolation, "protocol_violation"},
       {K::DeadlinePassed, "deadline_passed"},
       {K::WeightsNotStaged, "weights_not_staged"},
       {K::WeightsRefused, "weights_refused"},
       {K::SwitchFailed, "switch_failed"},
       {K::EqualRewards, "equal_rewards"},
       {K::TooOld, "too_old"},
       {K::NotGenerated, "not_generated"},
       {K::NotJudged, "not_judged"},
       {K::StopRequested, "stop_requested"},
       {K::StoppedBeforeEvaluation, "stopped_before_evaluation"},
       {K::WrongWeights, "wrong_weights"},
       {K::TooManyLosses, "too_many_losses"},
       {K::TooManyFailedGroups, "too_many_failed_groups"},
       {K::NobodyAttached, "nobody_attached"},
       {K::OptimizerRefused, "optimizer_refused"},
       {K::CheckpointFailed, "checkpoint_failed"},
       {K::Aborted, "aborted"},
       {K::CannotStart, "cannot_start"},
       {K::NotScored, "not_scored"},
       {K::VerifierNeverWorked, "verifier_never_worked"}}};
};

}  // namespace temper
