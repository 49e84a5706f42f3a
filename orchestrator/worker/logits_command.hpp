// `temper-worker logits`: what the rollout engine computes for given token ids, for
// `temper model --compare`.
#pragma once

#include <string>
#include <vector>

namespace temper::orchestrator {

struct LogitsArguments {
  std::string model;   ///< Model folder.
  std::string folder;  ///< Has the request, and gets the logits (model_comparison).
  std::vector<std::string> ignore;
};

/// Returns the exit code: 0; 1 after an error; kPermanentExit in a build without libtorch. The
/// last line on stderr gives the reason.
int run_logits(const LogitsArguments& arguments);

}  // namespace temper::orchestrator
