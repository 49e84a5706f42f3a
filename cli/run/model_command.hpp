// temper export RUN[@STEP] DIR: a checkpoint as a model folder. temper model DIR: what a model
// folder is. temper model import FILE: a config.json in the planner's words.
#pragma once

#include "cli/command/command_line.hpp"

#include <string>
#include <vector>

namespace temper::cli {

struct ExportOptions {
  std::string run;  ///< RUN or RUN@STEP.
  std::string to;
  std::string type;  ///< float32, bfloat16; empty: that of the base.
};
int run_export(const ExportOptions& options);

struct ModelOptions {
  std::string folder;                 ///< For the planner also a config.json; or `import`.
  std::string file;                   ///< Of `import`: a config.json, or its folder.
  std::string out;                    ///< Where the planner's words go; empty: to the screen.
  std::vector<std::string> ignore{};  ///< As model.ignore.
  bool json = false;
  bool yaml = false;  ///< In the planner's words.
};
int run_model(const ModelOptions& options);

Handler export_command(Flags& flags);
Handler model_command(Flags& flags);

}  // namespace temper::cli
