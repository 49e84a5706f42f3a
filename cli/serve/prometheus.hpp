// The Prometheus text format: the newest metrics of each run under names made of those of
// docs/reference/metrics.md (`temper_tokens_per_second_raw{run="..."}`), and the states of its
// actors from live.json.
#pragma once

#include "cli/serve/run_files.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>

namespace temper::cli {

std::string prometheus_text(std::span<const std::unique_ptr<RunFiles>> runs);

/// All metrics that prometheus_text() may print, with their definitions.
std::map<std::string, std::string> prometheus_metrics();

}  // namespace temper::cli
