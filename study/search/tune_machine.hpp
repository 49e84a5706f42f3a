// The search of tune.hpp for a pipeline on this machine's cores, where the space is small: every
// point is forecast with the real scheduler. Also the combinations that the user varies, for all
// hardware.
#pragma once

#include "study/search/tune.hpp"

#include <string>
#include <vector>

namespace temper::study {

/// One combination of varied keys.
struct VariedConfig {
  std::vector<std::string> sets;  ///< options.sets, then those of the combination.
  std::string text;               ///< "key=value ..."
  orchestrator::PipelineConfig config;
};
/// All combinations. Errors: too many; a configuration that cannot be read.
Result<std::vector<VariedConfig>> varied_configs(const TuneOptions& options);

/// Requires: options.calibration and options.modes. Errors: as tune().
Result<TuneResult> tune_machine(const TuneOptions& options,
                                const std::vector<double>& etas,
                                const orchestrator::PipelineConfig& given);

}  // namespace temper::study
