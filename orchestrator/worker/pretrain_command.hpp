// `temper-worker pretrain`: makes the base checkpoint of a pipeline.
#pragma once

#include <cstdint>
#include <string>

namespace temper::orchestrator {

struct PretrainArguments {
  std::string config;       ///< A resolved pipeline YAML.
  std::string out;          ///< Safetensors file to write.
  std::int64_t parent = 0;  ///< Process to die with; 0: none.
};

/// One line of progress per measurement to stdout. Returns the exit code.
int run_pretrain(const PretrainArguments& arguments);

}  // namespace temper::orchestrator
