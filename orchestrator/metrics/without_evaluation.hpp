// A record without what it tells of an evaluation: that is not work of training, and no figure of
// training counts it.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <optional>

namespace temper::orchestrator {

/// None: the record tells of no evaluation.
std::optional<Record> without_evaluation(const Record& record);

}  // namespace temper::orchestrator
