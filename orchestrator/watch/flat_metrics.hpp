// The figures of a line of metrics.jsonl as a flat list (`tokens_per_s/raw`, `states/decode`), and
// their names in the dashboards of other systems.
#pragma once

#include "orchestrator/pipeline/watch_sections.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::orchestrator {

using FlatMetrics = std::vector<std::pair<std::string, double>>;

/// Every number and boolean of a line of metrics.jsonl, in its order; nested names are joined by
/// `/`. None: the line is invalid (for instance still being written).
std::optional<FlatMetrics> flatten_line(std::string_view line);

/// `flat`, with the names in these systems appended.
FlatMetrics with_aliases(FlatMetrics flat, const std::vector<AliasTable>& tables);

}  // namespace temper::orchestrator
