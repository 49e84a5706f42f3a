// `temper-worker measure`: times a part of a pipeline's engines on this machine as they are used in
// a run, each part in its own process, and writes the results
// (orchestrator/worker/timing/timing.hpp).
#pragma once

#include <cstdint>
#include <string>

namespace temper::orchestrator {

struct MeasureArguments {
  std::string part;          ///< rollout, trainer, reference, beside, rest.
  std::int32_t threads = 1;  ///< Compute threads, one per core.
  std::string config;        ///< A resolved pipeline YAML.
  std::string weights;       ///< Safetensors file of the base checkpoint.
  std::string out;           ///< msgpack of Timings.
  std::int64_t parent = 0;   ///< Ends when this process ends; 0: none.
};

/// Prints one line of progress per measurement to stdout. Returns the exit code.
int run_measure(const MeasureArguments& arguments);

}  // namespace temper::orchestrator
