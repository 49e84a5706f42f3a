// The figures of a line of metrics.jsonl as a flat list: `tokens_per_s/raw`, `states/decode`. And
// the names under which other systems' dashboards know some of them.
#pragma once

#include "orchestrator/pipeline/watch_sections.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::orchestrator {

using FlatMetrics = std::vector<std::pair<std::string, double>>;

/// Every number and truth value of a line of metrics.jsonl, in its order; names of nested ones are
/// joined by `/`. None: it is no such line (it is still being written).
std::optional<FlatMetrics> flatten_line(std::string_view line);

/// A metric of ours and what others call it, with a space between several names; empty: they have
/// none that means the same.
struct Alias {
  std::string_view ours, trl, verl, prime_rl;
  std::string_view doc;  ///< What ours is, in one sentence.
  std::string_view in(AliasTable table) const;
};
/// Every name of ours that a line may hold, with one sentence each. Names of states are one line.
std::span<const Alias> metric_names();

/// `flat` again, with the names of these systems behind our own.
FlatMetrics with_aliases(FlatMetrics flat, const std::vector<AliasTable>& tables);

}  // namespace temper::orchestrator
