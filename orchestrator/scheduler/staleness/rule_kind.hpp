// The names of the staleness rules, and what a configuration may ask of each.
#pragma once

#include "core/choices.hpp"
#include "core/describe.hpp"

namespace temper {
namespace orchestrator {

/// Which groups are dispatched, trained and given up.
enum class StalenessRuleKind { Exact, Sync, Aggregate, Count, Drop, Wait, Window, InOrder };

struct StalenessTraits {
  StalenessRuleKind value;
  std::string_view name;
  bool fractions = false;  ///< The bound may be a fraction.
  /// No group is older than the bound while it is generated.
  bool limits_running = false;
};

inline constexpr auto kStalenessRules = std::to_array<StalenessTraits>({
    {.value = StalenessRuleKind::Exact, .name = "exact", .limits_running = true},
    {.value = StalenessRuleKind::Sync, .name = "sync", .limits_running = true},
    {.value = StalenessRuleKind::Aggregate, .name = "aggregate", .fractions = true},
    {.value = StalenessRuleKind::Count, .name = "count", .fractions = true},
    {.value = StalenessRuleKind::Drop, .name = "drop"},
    {.value = StalenessRuleKind::Wait, .name = "wait"},
    {.value = StalenessRuleKind::Window, .name = "window", .limits_running = true},
    {.value = StalenessRuleKind::InOrder, .name = "in_order", .limits_running = true},
});

constexpr const StalenessTraits& traits_of(StalenessRuleKind rule) {
  return row_of(kStalenessRules, rule);
}

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::StalenessRuleKind> {
  static constexpr auto value = names_of_rows(orchestrator::kStalenessRules);
};

}  // namespace temper
