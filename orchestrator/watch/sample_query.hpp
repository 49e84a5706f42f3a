// Queries for samples of a run, for the command line and the page. The unit is the group: a
// response is read beside the others of its group, because its advantage comes from them.
#pragma once

#include "orchestrator/watch/samples_file.hpp"

#include <deque>

namespace temper::orchestrator {

struct SampleQuery {
  std::optional<std::uint64_t> step;  ///< Only this step.
  std::string text;  ///< Text in the prompt, the answer or a response of the group; empty: any.
  /// Worst and Best: by the mean reward of the group; groups that were never judged come last.
  enum class Order { Newest, Worst, Best } order = Order::Newest;
  std::size_t limit = 10;  ///< Largest number of groups.
};

struct FoundSample {
  Sample sample;
  std::string line;  ///< As in the file.
};
struct FoundGroup {
  std::vector<FoundSample> responses;  ///< At least one.
  Spread reward;                       ///< Over the judged responses.
};
struct FoundSamples {
  std::deque<FoundGroup> groups;  ///< In the requested order; Newest: the newest last.
  std::size_t matches = 0;        ///< Number of matching groups, including those over the limit.
  bool reversed = false;          ///< Answers have their least significant digit first.
};

/// Error: the run has no samples.
Result<FoundSamples> find_samples(const UntrustedFolder& run_dir, const SampleQuery& query);

}  // namespace temper::orchestrator
