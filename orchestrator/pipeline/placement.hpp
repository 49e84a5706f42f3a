// Which actor runs on which cards, from the `placement` section and the replica counts: the parts
// that resolve() puts together (resolve.hpp).
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"

namespace temper::orchestrator {

/// The section with every empty list filled: in `separate` mode rollout gets the first half of the
/// cards (the larger if odd), or those of the first of several clusters, and the trainer the rest,
/// or each what the other leaves free;
/// reference and reward run beside the rollout. Counts (`rollout_cards`, `reference_cards`) take
/// cards in that order and leave the trainer the rest; `hybrid` is laid out likewise. In
/// `colocated` and `fused` mode every role gets every card. On simulated hardware the reward gets
/// none unless listed. May leave a list empty or overlapping where the section cannot be satisfied;
/// validate() reports it.
PlacementConfig resolve_placement(const PipelineConfig& config);

/// The part of a role's cards that belongs to replica `index` of `replicas`: every replicas-th
/// card, or one card shared in turn where there are more replicas than cards.
/// Requires: index < replicas.
std::vector<CardId> share_of(const std::vector<CardId>& cards,
                             std::size_t index,
                             std::size_t replicas);

/// The same as a block of neighbours, which is how engines of a cluster lie; empty where there are
/// more replicas than cards. Requires: index < replicas.
std::vector<CardId> block_of(const std::vector<CardId>& cards,
                             std::size_t index,
                             std::size_t replicas);

/// Every actor slot of the run: rollout-0, ..., reference-0, ..., reward-0, ..., trainer; in
/// `hybrid` mode with as many lent engines as the trainer's cards hold.
/// `placement`: resolve_placement() of the configuration.
std::vector<ActorSpec> actor_slots(const PipelineConfig& config, const PlacementConfig& placement);

/// The actors of a run that had those `before` and is to go on with `wanted` ones: who has the same
/// name is the same, who is wanted no more is away but keeps its place, and who is new comes last,
/// so that an id means one actor in all of the run's record.
std::vector<ActorSpec> actors_from_now(std::vector<ActorSpec> before,
                                       const std::vector<ActorSpec>& wanted);

}  // namespace temper::orchestrator
