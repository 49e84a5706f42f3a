// `temper-worker measure`: times a part of a pipeline's engines on this machine, as the actors of a
// run use them, each part in a process of its own as in a run, and writes what it found
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
  std::int64_t parent = 0;   ///< Process to die with; 0: none.
};

/// A line of progress per thing measured to stdout. Returns the exit code.
int run_measure(const MeasureArguments& arguments);

}  // namespace temper::orchestrator
