// Placement modes: the roles of a run that share cards.
#pragma once

namespace temper::actors {

/// Separate: none. Colocated: rollout and trainer. Fused: rollout, trainer and reference. Hybrid:
/// rollout engines have exclusive cards, and the trainer's cards also generate while they are lent.
enum class PlacementMode { Separate, Colocated, Fused, Hybrid };

}  // namespace temper::actors
