// The messages that an actor may send: for every message to the orchestrator, the roles and the
// stages in which it is allowed and the claims that its values must satisfy. An actor that violates
// this is replaced and its message is ignored. The scheduler checks every message against this
// table (orchestrator/scheduler/scheduler_claims.cpp), docs/reference/protocol.md prints it, and
// the tests cover each row.
#pragma once

#include "actors/protocol/catalog.hpp"

#include <algorithm>
#include <span>

namespace temper {
namespace actors {

/// Stage of an actor as seen by the orchestrator. Down: it has ended or was given up, and nothing
/// is expected from it.
enum class Stage { Down, Starting, AtWork };

/// A condition on the values of a message.
enum class Claim {
  LeaseIsItsOwn,
  ResponseIsLeased,
  AnswersAll,
  OneLogprobPerToken,
  SegmentsAddUp,
  HasTokens,
  VersionsGoForward,
  OneVersion,
  HandedBackOnRequest,
  ValuesArePossible,
  UpdateIsUnderWay,
  NextVersion,
  GroupsOfTheBatch,
  CheckpointIsAwaited,
  StagingIsAwaited,
  CommitIsAwaited,
  SwitchIsAwaited,
  SpansInOrder,
  NothingNegative,
  PieceOfTheImage
};

/// Describes the claim in one sentence.
constexpr std::string_view sentence(Claim claim) {
  switch (claim) {
    case Claim::LeaseIsItsOwn:
      return "the lease was granted to this actor, for this kind of work, since it started; a "
             "message under an expired lease has no effect";
    case Claim::ResponseIsLeased:
      return "the response belongs to the lease";
    case Claim::AnswersAll:
      return "there is one result for each response of the lease";
    case Claim::OneLogprobPerToken:
      return "there is one log-prob for each token";
    case Claim::SegmentsAddUp:
      return "the token counts of the segments add up to the number of tokens";
    case Claim::HasTokens:
      return "a finished response has at least one token";
    case Claim::VersionsGoForward:
      return "versions of segments never decrease, neither below that of the response's previous "
             "token nor below the group's v0, and never exceed the engine's version";
    case Claim::OneVersion:
      return "with `rollout.on_new_weights: finish`, all tokens of a response are of one version";
    case Claim::HandedBackOnRequest:
      return "a response is handed back only on request";
    case Claim::ValuesArePossible:
      return "each log-prob, reward and token id is within its bounds (actors/border/values.hpp)";
    case Claim::UpdateIsUnderWay:
      return "the lease is that of the current update";
    case Claim::NextVersion:
      return "the version follows the published one";
    case Claim::GroupsOfTheBatch:
      return "the groups are exactly those of the batch";
    case Claim::CheckpointIsAwaited:
      return "a checkpoint of this version was requested and not yet answered";
    case Claim::StagingIsAwaited:
      return "the actor was asked to stage this version and has not answered yet";
    case Claim::CommitIsAwaited:
      return "the actor was asked to commit this version and has not answered yet";
    case Claim::SwitchIsAwaited:
      return "the actor was asked for this action and has not answered yet";
    case Claim::SpansInOrder:
      return "spans start after the actor's launch, do not overlap, and have ended";
    case Claim::NothingNegative:
      return "no count, size or duration is negative";
    case Claim::PieceOfTheImage:
      return "the chunk is a missing part of the announced image, and its checksum matches";
  }
  return "";
}

/// True if a violated claim concerns the values of one response: then that response fails and its
/// sender continues. After any other violation the sender is replaced.
constexpr bool costs_the_response(Claim claim) {
  switch (claim) {
    case Claim::OneLogprobPerToken:
    case Claim::NothingNegative:
    case Claim::SegmentsAddUp:
    case Claim::HasTokens:
    case Claim::VersionsGoForward:
    case Claim::OneVersion:
    case Claim::ValuesArePossible:
      return true;
    default:
      return false;
  }
}

struct Permission {
  std::uint32_t tag = 0;
  std::string_view message;
  std::span<const RoleKind> roles;
  std::span<const Stage> stages;
  std::span<const Claim> claims;
};

namespace detail {
inline constexpr std::array kAllRoles{
    RoleKind::Rollout, RoleKind::Reference, RoleKind::Reward, RoleKind::Trainer};
inline constexpr std::array kRollout{RoleKind::Rollout};
inline constexpr std::array kReference{RoleKind::Reference};
inline constexpr std::array kReward{RoleKind::Reward};
inline constexpr std::array kTrainer{RoleKind::Trainer};
inline constexpr std::array kAllButReward{
    RoleKind::Rollout, RoleKind::Reference, RoleKind::Trainer};

inline constexpr std::array kStarting{Stage::Starting};
inline constexpr std::array kAtWork{Stage::AtWork};
inline constexpr std::array kUp{Stage::Starting, Stage::AtWork};

inline constexpr std::array kOfActivity{Claim::SpansInOrder, Claim::NothingNegative};
inline constexpr std::array kOfGenerated{Claim::LeaseIsItsOwn,
                                         Claim::ResponseIsLeased,
                                         Claim::OneLogprobPerToken,
                                         Claim::ValuesArePossible,
                                         Claim::NothingNegative,
                                         Claim::SegmentsAddUp,
                                         Claim::HasTokens,
                                         Claim::VersionsGoForward,
                                         Claim::OneVersion,
                                         Claim::HandedBackOnRequest};
inline constexpr std::array kOfCountedGenerated{Claim::LeaseIsItsOwn,
                                                Claim::ResponseIsLeased,
                                                Claim::NothingNegative,
                                                Claim::SegmentsAddUp,
                                                Claim::HasTokens,
                                                Claim::VersionsGoForward,
                                                Claim::OneVersion,
                                                Claim::HandedBackOnRequest};
inline constexpr std::array kOfScored{
    Claim::LeaseIsItsOwn, Claim::AnswersAll, Claim::OneLogprobPerToken, Claim::ValuesArePossible};
inline constexpr std::array kOfCountedScored{Claim::LeaseIsItsOwn};
inline constexpr std::array kOfJudged{
    Claim::LeaseIsItsOwn, Claim::AnswersAll, Claim::ValuesArePossible};
inline constexpr std::array kOfTrained{
    Claim::UpdateIsUnderWay, Claim::NextVersion, Claim::GroupsOfTheBatch, Claim::NothingNegative};
inline constexpr std::array kOfWeights{Claim::NothingNegative};
inline constexpr std::array kOfChunk{Claim::PieceOfTheImage};
inline constexpr std::array kOfSaved{Claim::CheckpointIsAwaited};
inline constexpr std::array kOfStaged{Claim::StagingIsAwaited};
inline constexpr std::array kOfCommitted{Claim::CommitIsAwaited};
inline constexpr std::array kOfSwitched{Claim::SwitchIsAwaited, Claim::NothingNegative};

template <class M>
constexpr Permission permission(std::span<const RoleKind> roles,
                                std::span<const Stage> stages,
                                std::span<const Claim> claims = {}) {
  return {M::kTag, M::kName, roles, stages, claims};
}
}  // namespace detail

/// Sorted by tag. Other messages are not for the orchestrator; those of virtual_time.hpp come from
/// the processes that host actors, not from an actor.
inline constexpr std::array kPermissions{
    detail::permission<Ready>(detail::kAllRoles, detail::kStarting),
    detail::permission<Heartbeat>(detail::kAllRoles, detail::kUp),
    detail::permission<Activity>(detail::kAllRoles, detail::kUp, detail::kOfActivity),
    detail::permission<Failed>(detail::kAllRoles, detail::kUp),
    detail::permission<Left>(detail::kAllRoles, detail::kUp),
    detail::permission<Generated>(detail::kRollout, detail::kAtWork, detail::kOfGenerated),
    detail::permission<ReferenceScored>(detail::kReference, detail::kAtWork, detail::kOfScored),
    detail::permission<Judged>(detail::kReward, detail::kAtWork, detail::kOfJudged),
    detail::permission<Trained>(detail::kTrainer, detail::kAtWork, detail::kOfTrained),
    detail::permission<Prepared>(detail::kTrainer, detail::kAtWork, detail::kOfCountedScored),
    detail::permission<StateSaved>(detail::kTrainer, detail::kAtWork, detail::kOfSaved),
    detail::permission<TrainerReady>(detail::kTrainer, detail::kStarting, detail::kOfWeights),
    detail::permission<WeightsChunk>(detail::kTrainer, detail::kUp, detail::kOfChunk),
    detail::permission<FetchWeights>(detail::kRollout, detail::kAtWork, detail::kOfStaged),
    detail::permission<WeightsStaged>(detail::kRollout, detail::kAtWork, detail::kOfStaged),
    detail::permission<WeightsCommitted>(detail::kRollout, detail::kAtWork, detail::kOfCommitted),
    detail::permission<Switched>(detail::kAllButReward, detail::kAtWork, detail::kOfSwitched),
    detail::permission<CountedGenerated>(
        detail::kRollout, detail::kAtWork, detail::kOfCountedGenerated),
    detail::permission<CountedScored>(
        detail::kReference, detail::kAtWork, detail::kOfCountedScored),
    detail::permission<CountedPrepared>(
        detail::kTrainer, detail::kAtWork, detail::kOfCountedScored),
};

/// Null if no actor may send this message.
constexpr const Permission* permission_of(std::uint32_t tag) {
  for (const Permission& p : kPermissions) {
    if (p.tag == tag)
      return &p;
  }
  return nullptr;
}

constexpr bool may_say(RoleKind role, Stage stage, std::uint32_t tag) {
  const Permission* p = permission_of(tag);
  return p != nullptr && std::find(p->roles.begin(), p->roles.end(), role) != p->roles.end() &&
         std::find(p->stages.begin(), p->stages.end(), stage) != p->stages.end();
}

}  // namespace actors

template <>
struct EnumNames<actors::Stage> {
  using S = actors::Stage;
  static constexpr std::array<std::pair<S, std::string_view>, 3> value{
      {{S::Down, "down"}, {S::Starting, "starting"}, {S::AtWork, "at work"}}};
};

}  // namespace temper
