// The figures of a line of metrics.jsonl as a flat list (`tokens_per_s/raw`, `states/decode`), and
// their names in the dashboards of other systems.
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

/// Every number and boolean of a line of metrics.jsonl, in its order; nested names are joined by
/// `/`. None: the line is invalid (for instance still being written).
std::optional<FlatMetrics> flatten_line(std::string_view line);

/// A metric of Temper and its names in other systems, separated by spaces; empty: no metric with
/// the same meaning.
struct Alias {
  std::string_view ours, trl, verl, prime_rl;
  std::string_view doc;  ///< Definition, in one sentence.
  std::string_view in(AliasTable table) const;
};
/// Every metric that a line may have, with its definition. All states are one entry.
std::span<const Alias> metric_names();

/// `flat`, with the names in these systems appended.
FlatMetrics with_aliases(FlatMetrics flat, const std::vector<AliasTable>& tables);

}  // namespace temper::orchestrator
