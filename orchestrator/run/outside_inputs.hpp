// Inputs of a run that are not in its folder: files of problems, and the teachers. Their digests
// are facts in inputs.manifest, so that a resume notices an edited file and a replaced model.
#pragma once

#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace temper::orchestrator {

/// XXH3-64 of the content of each such input, by its key in the configuration. Reads them
/// completely. Errors: an input cannot be read.
Result<std::map<std::string, std::uint64_t>> digest_outside_inputs(const PipelineConfig& config);

/// Compares the inputs with the digests of the start. Inputs without one are not compared: an
/// earlier build recorded none. Errors: as digest_outside_inputs(); InvalidInput, which names the
/// first input that has changed.
Status check_outside_inputs(const PipelineConfig& config,
                            const std::map<std::string, std::uint64_t>& recorded);

}  // namespace temper::orchestrator
