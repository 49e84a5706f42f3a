// Which roles of a run share cards.
#pragma once

namespace temper::actors {

/// Separate: none. Colocated: rollout and trainer. Fused: the reference too. Hybrid: rollout
/// engines have cards of their own, and the trainer's cards roll out besides while they are lent.
enum class PlacementMode { Separate, Colocated, Fused, Hybrid };

}  // namespace temper::actors
