// The list of all messages of the protocol. Dispatch, the generated protocol reference and the
// golden-bytes test iterate it; a new message must be added here.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/lifecycle.hpp"
#include "actors/protocol/virtual_time.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"

namespace temper::actors {

using AllMessages = TypeList<Hello,
                             Welcome,
                             Reject,
                             Ready,
                             Heartbeat,
                             Taken,
                             Activity,
                             Failed,
                             Stop,
                             Left,
                             Generate,
                             Generated,
                             Cancel,
                             Withdraw,
                             ScoreReference,
                             ReferenceScored,
                             Judge,
                             Judged,
                             Train,
                             Trained,
                             Prepare,
                             Prepared,
                             SaveState,
                             StateSaved,
                             TrainerReady,
                             StageWeights,
                             WeightsChunk,
                             WeightsStaged,
                             FetchWeights,
                             FeedWeights,
                             CommitWeights,
                             WeightsCommitted,
                             Switch,
                             Switched,
                             CountedGenerate,
                             CountedGenerated,
                             CountedScore,
                             CountedScored,
                             CountedJudge,
                             CountedTrain,
                             CountedPrepare,
                             CountedPrepared,
                             CountedRelease,
                             Advance,
                             Advanced>;

namespace detail {
template <class... Ts>
constexpr bool all_distinct(TypeList<Ts...>) {
  constexpr std::array<std::uint32_t, sizeof...(Ts)> tags{Ts::kTag...};
  constexpr std::array<std::string_view, sizeof...(Ts)> names{Ts::kName...};
  for (std::size_t i = 0; i < tags.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (tags[i] == tags[j] || names[i] == names[j])
        return false;
    }
  }
  return true;
}
}  // namespace detail

static_assert(detail::all_distinct(AllMessages{}), "message names and tags must be unique");

}  // namespace temper::actors
