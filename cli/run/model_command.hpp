// `temper export RUN[@STEP] DIR` writes a checkpoint as a model folder. `temper model DIR`
// describes a model folder, and with --compare compares what Temper and transformers compute with
// it. `temper model import FILE` converts a config.json into the planner's
// format.
#pragma once

#include "cli/command/command_line.hpp"

#include <string>
#include <vector>

namespace temper::cli {

struct ExportOptions {
  std::string run;  ///< RUN or RUN@STEP.
  std::string to;
  std::string type;  ///< float32 or bfloat16; empty: that of the base.
  bool merge = false;
};
int run_export(const ExportOptions& options);

struct ModelOptions {
  std::string folder;  ///< A folder, for the planner also a config.json; or `import`.
  std::string file;    ///< For `import`: a config.json, or its folder.
  std::string out;     ///< Output file of the planner's format; empty: stdout.
  std::vector<std::string> ignore{};  ///< Keys to ignore, as in model.ignore.
  bool json = false;
  bool yaml = false;     ///< Print in the planner's format.
  bool compare = false;  ///< Compare with transformers.
};
int run_model(const ModelOptions& options);

Handler export_command(Flags& flags);
Handler model_command(Flags& flags);

}  // namespace temper::cli
