// The direction of each message. Every message of the catalog is in exactly one of the three lists.
#pragma once

#include "actors/protocol/catalog.hpp"

namespace temper {
namespace actors {

enum class Direction { ToWorker, ToOrchestrator, BothWays };

using FromOrchestrator = TypeList<Welcome,
                                  Reject,
                                  Stop,
                                  Generate,
                                  Cancel,
                                  Withdraw,
                                  ScoreReference,
                                  Judge,
                                  Train,
                                  Prepare,
                                  SaveState,
                                  StageWeights,
                                  FeedWeights,
                                  CommitWeights,
                                  Switch,
                                  CountedGenerate,
                                  CountedScore,
                                  CountedJudge,
                                  CountedTrain,
                                  CountedPrepare,
                                  CountedRelease,
                                  Advance>;
using FromWorker = TypeList<Hello,
                            Ready,
                            Activity,
                            Failed,
                            Left,
                            Generated,
                            ReferenceScored,
                            Judged,
                            Trained,
                            Prepared,
                            StateSaved,
                            TrainerReady,
                            WeightsStaged,
                            WeightsCommitted,
                            Switched,
                            CountedGenerated,
                            CountedScored,
                            CountedPrepared,
                            Advanced>;
using FromBoth = TypeList<Heartbeat, Taken, FetchWeights, WeightsChunk>;

namespace detail {
template <class M, class... Ts>
constexpr bool is_among(TypeList<Ts...>) {
  return (std::same_as<M, Ts> || ...);
}
}  // namespace detail

template <class M>
constexpr Direction direction() {
  constexpr bool orchestrator = detail::is_among<M>(FromOrchestrator{});
  constexpr bool worker = detail::is_among<M>(FromWorker{});
  constexpr bool both = detail::is_among<M>(FromBoth{});
  static_assert(orchestrator + worker + both == 1,
                "a message must be in exactly one of the lists above");
  return orchestrator ? Direction::ToWorker
         : worker     ? Direction::ToOrchestrator
                      : Direction::BothWays;
}

}  // namespace actors

template <>
struct EnumNames<actors::Direction> {
  using D = actors::Direction;
  static constexpr std::array<std::pair<D, std::string_view>, 3> value{
      {{D::ToWorker, "orchestrator to worker"},
       {D::ToOrchestrator, "worker to orchestrator"},
       {D::BothWays, "both ways"}}};
};

}  // namespace temper
