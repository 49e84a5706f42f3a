#include "orchestrator/watch/sample_query.hpp"

#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace temper::orchestrator {
namespace {

using Order = SampleQuery::Order;

struct Candidate {
  double rank = 0;  ///< The lowest come first.
  std::string line;
};

/// The reward of a line, without reading all of it: within texts quotes are escaped, so that what
/// is looked for stands in no text.
std::optional<double> reward_of(std::string_view line) {
  constexpr std::string_view kKey = ",\"reward\":";
  const std::size_t at = line.find(kKey);
  double reward = 0;
  if (at == std::string_view::npos ||
      std::from_chars(line.data() + at + kKey.size(), line.data() + line.size(), reward).ec !=
          std::errc())
    return std::nullopt;
  return reward;
}

void keep(Candidate found, const SampleQuery& query, std::deque<Candidate>& kept) {
  if (query.order == Order::Newest) {
    kept.push_back(std::move(found));
    if (kept.size() > query.limit)
      kept.pop_front();
    return;
  }
  const auto at = std::ranges::upper_bound(kept, found.rank, {}, &Candidate::rank);
  if (at == kept.end() && kept.size() >= query.limit)
    return;
  kept.insert(at, std::move(found));
  if (kept.size() > query.limit)
    kept.pop_back();
}

bool has_text(std::string_view line, std::string_view text) {
  const auto sample = parse_sample(line);
  const auto in = [&](const std::string& where) { return where.find(text) != std::string::npos; };
  return sample && (in(sample->prompt) || in(sample->response) || in(sample->answer));
}

}  // namespace

Result<FoundSamples> find_samples(const std::filesystem::path& run_dir, const SampleQuery& query) {
  FoundSamples found;
  std::deque<Candidate> kept;
  // A line begins with its step; texts are escaped as JSON has them: most lines are passed over
  // unread.
  const std::string begin = query.step ? fmt::format("{{\"step\":{},", *query.step) : "{\"step\":";
  const std::string quoted = to_json(query.text);
  const std::string_view escaped = std::string_view(quoted).substr(1, quoted.size() - 2);
  TEMPER_TRY_STATUS(read_sample_lines(run_dir, [&](std::string_view line) {
    if (!line.starts_with(begin) || line.find(escaped) == std::string_view::npos)
      return Go::On;
    const auto reward = reward_of(line);
    if (!reward || (!query.text.empty() && !has_text(line, query.text)))
      return Go::On;
    ++found.matches;
    keep({query.order == Order::Best ? -*reward : *reward, std::string(line)}, query, kept);
    return Go::On;
  }));
  for (Candidate& candidate : kept) {
    if (auto sample = parse_sample(candidate.line))
      found.samples.push_back({*std::move(sample), std::move(candidate.line)});
  }
  return found;
}

}  // namespace temper::orchestrator
