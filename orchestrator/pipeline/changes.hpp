// Which settings a run is resumed with are other ones than it had, and which of them may be
// (docs/resume.md).
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/scheduler/state/setting_change.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// A configuration as text, one entry per key: "staleness.bound" -> "2". `yaml`: a whole one.
std::map<std::string, std::string> flat_settings(std::string_view yaml);

/// In the order of their keys; without `run_dir`.
std::vector<SettingChange> changed_settings(const PipelineConfig& before,
                                            const PipelineConfig& after);

/// Why a run cannot be resumed with this change; empty: it can.
std::string refusal_of(const SettingChange& change);

/// Error: some change may not be; it names each key, both values and why.
Status check_changes(const std::vector<SettingChange>& changes);

/// "steps: 100 -> 200", a line each, indented.
std::string changes_text(const std::vector<SettingChange>& changes);

}  // namespace temper::orchestrator
