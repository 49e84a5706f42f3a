// temper export RUN[@STEP] DIR: a checkpoint as a model folder. temper model DIR: what a model
// folder is.
#pragma once

#include "cli/command/command_line.hpp"

#include <string>

namespace temper::cli {

struct ExportOptions {
  std::string run;  ///< RUN or RUN@STEP.
  std::string to;
  std::string type;  ///< float32, bfloat16; empty: that of the base.
};
int run_export(const ExportOptions& options);

struct ModelOptions {
  std::string folder;  ///< For the planner also a config.json.
  bool json = false;
  bool yaml = false;  ///< In the planner's words.
};
int run_model(const ModelOptions& options);

Handler export_command(Flags& flags);
Handler model_command(Flags& flags);

}  // namespace temper::cli
