// Which samples of a run are asked for, by the command line and by the page. The unit is the group:
// a response is read beside its siblings, since its advantage comes from them.
#pragma once

#include "orchestrator/watch/samples_file.hpp"

#include <deque>

namespace temper::orchestrator {

struct SampleQuery {
  std::optional<std::uint64_t> step;  ///< Of this update alone.
  std::string text;  ///< In the prompt, the answer or a response of the group; empty: any.
  /// Worst and Best: by the mean reward of the group; a group that was never judged comes last.
  enum class Order { Newest, Worst, Best } order = Order::Newest;
  std::size_t limit = 10;  ///< Groups.
};

struct FoundSample {
  Sample sample;
  std::string line;  ///< As it is in the file.
};
struct FoundGroup {
  std::vector<FoundSample> responses;  ///< At least one.
  Spread reward;                       ///< Of those that were judged.
};
struct FoundSamples {
  std::deque<FoundGroup> groups;  ///< In the order asked for; Newest: the newest last.
  std::size_t matches = 0;        ///< Groups, with those that are over the limit.
  bool reversed = false;          ///< Answers are written with their last digit first.
};

/// Error: the run keeps no samples.
Result<FoundSamples> find_samples(const UntrustedFolder& run_dir, const SampleQuery& query);

}  // namespace temper::orchestrator
