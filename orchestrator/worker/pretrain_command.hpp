// `temper-worker pretrain`: pretrains the base checkpoint of a pipeline.
#pragma once

#include <cstdint>
#include <string>

namespace temper::orchestrator {

struct PretrainArguments {
  std::string config;       ///< A resolved pipeline YAML.
  std::string out;          ///< Safetensors file to write.
  std::int64_t parent = 0;  ///< Ends when this process ends; 0: none.
};

/// Prints one line of progress per measurement to stdout. Returns the exit code.
int run_pretrain(const PretrainArguments& arguments);

}  // namespace temper::orchestrator
