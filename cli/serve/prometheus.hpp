// The Prometheus text format: the newest metrics of each run under the names of
// docs/reference/metrics.md
// (`temper_tokens_per_s_raw{run="..."}`), and the states of its actors from live.json.
#pragma once

#include "cli/serve/run_files.hpp"

#include <memory>
#include <span>
#include <string>

namespace temper::cli {

std::string prometheus_text(std::span<const std::unique_ptr<RunFiles>> runs);

}  // namespace temper::cli
