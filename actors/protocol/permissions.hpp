// What an actor may say: for every message to the orchestrator the roles it may come from, what the
// actor must be at, and what must be true of its values. Whoever says anything else is replaced,
// and nothing of the message counts. One table: the scheduler holds every message against it
// (orchestrator/scheduler/scheduler_claims.cpp), docs/protocol.md prints it, and the tests go
// through it row by row.
#pragma once

#include "actors/protocol/catalog.hpp"

#include <algorithm>
#include <span>

namespace temper {
namespace actors {

/// What an actor is at, as its orchestrator sees it. Down: nothing is expected of it; it has ended,
/// or was given up.
enum class Stage { Down, Starting, AtWork };

/// What must be true of a message's values.
enum class Claim {
  LeaseIsItsOwn,
  ResponseIsLeased,
  AnswersAll,
  OneLogprobPerToken,
  SegmentsAddUp,
  HasTokens,
  VersionsGoForward,
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

/// One sentence per claim.
constexpr std::string_view sentence(Claim claim) {
  switch (claim) {
    case Claim::LeaseIsItsOwn:
      return "its lease was granted to this actor, for this work, since it came up; what is said "
             "under one that is over has no effect";
    case Claim::ResponseIsLeased:
      return "the response is one of its lease";
    case Claim::AnswersAll:
      return "there is one answer for each response of the lease";
    case Claim::OneLogprobPerToken:
      return "there is one log-prob for each token";
    case Claim::SegmentsAddUp:
      return "the tokens of its segments add up to its tokens";
    case Claim::HasTokens:
      return "a response that ended has at least one token";
    case Claim::VersionsGoForward:
      return "no segment is of an older version than the one before it, the response's last token "
             "or its group's v0, nor of a newer one than the engine holds";
    case Claim::HandedBackOnRequest:
      return "a response is handed back only where that was asked";
    case Claim::ValuesArePossible:
      return "each log-prob, reward and token id is a possible one (actors/border/values.hpp)";
    case Claim::UpdateIsUnderWay:
      return "its lease is that of the update under way";
    case Claim::NextVersion:
      return "the version is the one after the published one";
    case Claim::GroupsOfTheBatch:
      return "the groups are those of the batch";
    case Claim::CheckpointIsAwaited:
      return "a checkpoint of this version was asked for and not yet answered";
    case Claim::StagingIsAwaited:
      return "it was asked to stage this version and has not yet answered";
    case Claim::CommitIsAwaited:
      return "it was asked to commit this version and has not yet answered";
    case Claim::SwitchIsAwaited:
      return "it was asked for this action and has not yet answered";
    case Claim::SpansInOrder:
      return "spans begin after its launch, follow each other and have ended";
    case Claim::NothingNegative:
      return "no count, size or duration is negative";
    case Claim::PieceOfTheImage:
      return "it is a piece that is still missing of the image that was announced, and its "
             "checksum is right";
  }
  return "";
}

/// A broken claim about the values of one response costs that response: it fails, and its sender
/// goes on. Any other broken claim costs the sender: it is replaced.
constexpr bool costs_the_response(Claim claim) {
  switch (claim) {
    case Claim::OneLogprobPerToken:
    case Claim::NothingNegative:
    case Claim::SegmentsAddUp:
    case Claim::HasTokens:
    case Claim::VersionsGoForward:
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
                                         Claim::HandedBackOnRequest};
inline constexpr std::array kOfCountedGenerated{Claim::LeaseIsItsOwn,
                                                Claim::ResponseIsLeased,
                                                Claim::NothingNegative,
                                                Claim::SegmentsAddUp,
                                                Claim::HasTokens,
                                                Claim::VersionsGoForward,
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

/// By tag. A message that is not here is not for an orchestrator. Those of virtual_time.hpp are
/// between it and the processes that hold its actors, not said by an actor.
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

/// Null: nobody may say it.
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
