// `temper samples RUN`: what was generated, to be read.
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
  bool json = false;  ///< The lines of samples.jsonl as they are.
  Colours colours = Colours::Off;
};

/// kFound where no sample is as asked for.
int run_samples(const SamplesOptions& options, std::ostream& out, std::ostream& err);

/// `temper samples`: its flags, and what it does.
Handler samples_command(Flags& flags);

}  // namespace temper::cli
