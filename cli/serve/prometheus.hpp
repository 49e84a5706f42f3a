// The text that Prometheus scrapes: the newest line of each run's metrics under the names of
// docs/metrics.md (`temper_tokens_per_s_raw{run="..."}`), and what live.json says of its actors.
#pragma once

#include "cli/serve/run_files.hpp"

#include <memory>
#include <span>
#include <string>

namespace temper::cli {

std::string prometheus_text(std::span<const std::unique_ptr<RunFiles>> runs);

}  // namespace temper::cli
