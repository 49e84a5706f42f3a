// Removes evaluations from a record: they are not training work, and no training figure counts
// them.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <optional>

namespace temper::orchestrator {

/// None: the record has no part of an evaluation.
std::optional<Record> without_evaluation(const Record& record);

}  // namespace temper::orchestrator
