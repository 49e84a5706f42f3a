// Which samples of a run are asked for: by the command line, and by the page.
#pragma once

#include "orchestrator/watch/samples_file.hpp"

#include <deque>

namespace temper::orchestrator {

struct SampleQuery {
  std::optional<std::uint64_t> step;  ///< Of this update alone.
  std::string text;                   ///< In the prompt, the response or the answer; empty: any.
  enum class Order { Newest, Worst, Best } order = Order::Newest;
  std::size_t limit = 10;
};

struct FoundSample {
  Sample sample;
  std::string line;  ///< As it is in the file.
};
struct FoundSamples {
  std::deque<FoundSample> samples;  ///< In the order asked for; Newest: the newest last.
  std::size_t matches = 0;          ///< Besides those that are over the limit.
};

/// Error: the run keeps no samples.
Result<FoundSamples> find_samples(const std::filesystem::path& run_dir, const SampleQuery& query);

}  // namespace temper::orchestrator
