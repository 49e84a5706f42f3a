// Settings that differ between a run and its resumption, and which of them may differ
// (docs/how-to/resume.md).
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/scheduler/state/setting_change.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// A complete configuration, flattened: "staleness.bound" -> "2". `yaml`: as written by to_yaml().
std::map<std::string, std::string> flat_settings(std::string_view yaml);

/// Sorted by key; `run_dir` is ignored.
std::vector<SettingChange> changed_settings(const PipelineConfig& before,
                                            const PipelineConfig& after);

/// Why a run cannot be resumed with this change; empty if it can.
std::string refusal_of(const SettingChange& change);

/// Error InvalidInput: names each change that is not allowed, with both values and the reason.
Status check_changes(const std::vector<SettingChange>& changes);

/// One indented line per change: "steps: 100 -> 200".
std::string changes_text(const std::vector<SettingChange>& changes);

}  // namespace temper::orchestrator
