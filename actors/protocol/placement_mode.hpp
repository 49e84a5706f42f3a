// Placement modes: which roles of a run share cards. Code that depends on the mode asks for one of
// the properties below, so that a new mode is a row of this table, and a class derived from
// SharingMode (orchestrator/scheduler/sharing) if its cards change role by a rule of their own.
#pragma once

#include "core/choices.hpp"
#include "core/describe.hpp"

namespace temper {
namespace actors {

enum class PlacementMode { Separate, Colocated, Fused, Hybrid };

struct PlacementTraits {
  PlacementMode value;
  std::string_view name;
  std::string_view doc;    ///< For the reference of the configuration.
  bool exclusive_rollout;  ///< Rollout engines have exclusive cards.
  bool shares;             ///< Rollout engines time-share the trainer's cards.
  bool shares_reference;   ///< The reference time-shares the trainer's cards too.

  /// Every card is shared, so that rollout and training alternate.
  constexpr bool alternates() const { return !exclusive_rollout; }
  /// The trainer's cards also generate while it waits.
  constexpr bool lends() const { return exclusive_rollout && shares; }
  /// The trainer may keep its cards from one batch to the next, without a turn of the reference.
  constexpr bool trainer_may_stay() const { return exclusive_rollout && !shares_reference; }
};

inline constexpr auto kPlacementModes = std::to_array<PlacementTraits>({
    {.value = PlacementMode::Separate,
     .name = "separate",
     .doc = "rollout and trainer have exclusive devices",
     .exclusive_rollout = true,
     .shares = false,
     .shares_reference = false},
    {.value = PlacementMode::Colocated,
     .name = "colocated",
     .doc = "rollout and trainer time-share the same devices",
     .exclusive_rollout = false,
     .shares = true,
     .shares_reference = false},
    {.value = PlacementMode::Fused,
     .name = "fused",
     .doc = "the reference shares them too",
     .exclusive_rollout = false,
     .shares = true,
     .shares_reference = true},
    {.value = PlacementMode::Hybrid,
     .name = "hybrid",
     .doc = "the rollout has exclusive devices, and the trainer lends its own to rollout engines "
            "while it waits",
     .exclusive_rollout = true,
     .shares = true,
     .shares_reference = false},
});

constexpr const PlacementTraits& traits_of(PlacementMode mode) {
  return row_of(kPlacementModes, mode);
}

/// The mode whose actors are placed like this; without one, "?".
constexpr std::string_view placement_name(bool exclusive_rollout,
                                          bool shares,
                                          bool shares_reference) {
  for (const PlacementTraits& mode : kPlacementModes) {
    const bool alike =
        mode.exclusive_rollout == exclusive_rollout && mode.shares_reference == shares_reference;
    if (mode.shares == shares && (alike || !shares))
      return mode.name;
  }
  return "?";
}

}  // namespace actors

template <>
struct EnumNames<actors::PlacementMode> {
  static constexpr auto value = names_of_rows(actors::kPlacementModes);
};

}  // namespace temper
