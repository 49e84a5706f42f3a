// `temper samples RUN`: prints prompts, responses and rewards.
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/view/canvas.hpp"
#include "orchestrator/watch/sample_query.hpp"

#include <iosfwd>
#include <string>

namespace temper::cli {

struct SamplesOptions {
  std::string run;  ///< Folder of the run.
  orchestrator::SampleQuery query;
  bool json = false;  ///< Print the lines of samples.jsonl.
  Colours colours = Colours::Off;
};

/// Returns the exit code: kFound if no sample matches.
int run_samples(const SamplesOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper samples`.
Handler samples_command(Flags& flags);

}  // namespace temper::cli
