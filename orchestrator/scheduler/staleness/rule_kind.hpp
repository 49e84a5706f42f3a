// The names of the staleness rules.
#pragma once

#include "core/describe.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace temper {
namespace orchestrator {

/// Which groups are dispatched, trained and given up.
enum class StalenessRuleKind { Exact, Sync, Aggregate, Count, Drop, Wait, Window, InOrder };

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::StalenessRuleKind> {
  using K = orchestrator::StalenessRuleKind;
  static constexpr std::array<std::pair<K, std::string_view>, 8> value{{{K::Exact, "exact"},
                                                                        {K::Sync, "sync"},
                                                                        {K::Aggregate, "aggregate"},
                                                                        {K::Count, "count"},
                                                                        {K::Drop, "drop"},
                                                                        {K::Wait, "wait"},
                                                                        {K::Window, "window"},
                                                                        {K::InOrder, "in_order"}}};
};

}  // namespace temper
