#include "orchestrator/watch/sample_query.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

double rank(const Sample& s, SampleQuery::Order order) {
  return order == SampleQuery::Order::Best ? -s.reward : s.reward;
}

void keep(FoundSample found, const SampleQuery& query, std::deque<FoundSample>& kept) {
  if (query.order == SampleQuery::Order::Newest) {
    kept.push_back(std::move(found));
    if (kept.size() > query.limit)
      kept.pop_front();
    return;
  }
  const auto at = std::ranges::upper_bound(
      kept, rank(found.sample, query.order), {}, [&](const FoundSample& f) {
        return rank(f.sample, query.order);
      });
  if (at == kept.end() && kept.size() >= query.limit)
    return;
  kept.insert(at, std::move(found));
  if (kept.size() > query.limit)
    kept.pop_back();
}

bool has_text(const Sample& s, std::string_view text) {
  const auto in = [&](const std::string& where) { return where.find(text) != std::string::npos; };
  return text.empty() || in(s.prompt) || in(s.response) || in(s.answer);
}

}  // namespace

Result<FoundSamples> find_samples(const std::filesystem::path& run_dir, const SampleQuery& query) {
  FoundSamples found;
  // A line begins with its step, so that most are passed over unread.
  const std::string begin = query.step ? fmt::format("{{\"step\":{},", *query.step) : "{";
  TEMPER_TRY_STATUS(read_sample_lines(run_dir, [&](std::string_view line) {
    if (!line.starts_with(begin))
      return Go::On;
    auto sample = parse_sample(line);
    if (!sample || !has_text(*sample, query.text))
      return Go::On;
    ++found.matches;
    keep({*std::move(sample), std::string(line)}, query, found.samples);
    return Go::On;
  }));
  return found;
}

}  // namespace temper::orchestrator
