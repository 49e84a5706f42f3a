// Assigns cards to actors, from the `placement` section and the replica counts. resolve() combines
// the parts (resolve.hpp).
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"

namespace temper::orchestrator {

/// The section with every empty list filled. `separate`: the rollout gets the first half of the
/// cards (the larger half if their number is odd), or those of the first of several clusters, and
/// the trainer the rest; if one list is given, the other role gets the remaining cards. Reference
/// and reward share the cards of the rollout. Counts (`rollout_cards`, `reference_cards`) take
/// cards in that order and leave the rest to the trainer; `hybrid` works likewise. In modes that
/// share all cards, every role gets every card. On simulated hardware the reward actors get none
/// unless listed. If the section cannot be satisfied, lists may stay empty or overlap; validate()
/// reports it.
PlacementConfig resolve_placement(const PipelineConfig& config);

/// The cards of replica `index` of `replicas`: every replicas-th card of the role, or one card if
/// there are more replicas than cards, assigned round-robin. Requires: index < replicas.
std::vector<CardId> share_of(const std::vector<CardId>& cards,
                             std::size_t index,
                             std::size_t replicas);

/// The same as a contiguous block, as engines of a cluster are laid out; empty if there are more
/// replicas than cards. Requires: index < replicas.
std::vector<CardId> block_of(const std::vector<CardId>& cards,
                             std::size_t index,
                             std::size_t replicas);

/// All actor slots of the run: rollout-0, ..., reference-0, ..., reward-0, ..., trainer; with
/// several teachers, reference-NAME-0, ... of each; in modes that lend the trainer's cards, with as
/// many more engines as fit them. `placement`: resolve_placement() of the configuration.
std::vector<ActorSpec> actor_slots(const PipelineConfig& config, const PlacementConfig& placement);

/// Merges the actors that a run had (`before`) with those it is to continue with (`wanted`). Actors
/// are matched by name. One that is no longer wanted is marked away but keeps its slot, and new
/// ones are appended, so that an id means the same actor in the whole event log.
std::vector<ActorSpec> actors_from_now(std::vector<ActorSpec> before,
                                       const std::vector<ActorSpec>& wanted);

}  // namespace temper::orchestrator
