#include "study/search/steady_terms.hpp"

#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "study/simulate/first_batch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::study::steady {

BatchStatistics draw(const orchestrator::PipelineConfig& c,
                     const actors::SimulationConfig& simulation) {
  const FirstBatch first = draw_first_batch(c, simulation);
  const auto groups = static_cast<double>(first.prompts.size());
  BatchStatistics d;
  d.sequences = first.sequences();
  std::vector<double> lengths;
  double squares = 0;
  for (std::size_t g = 0; g < first.prompts.size(); ++g) {
    double longest = 0;
    for (std::size_t k = 0; k < first.group_size; ++k) {
      const Tokens response = first.responses[g * first.group_size + k];
      lengths.push_back(static_cast<double>(response.count()));
      longest = std::max(longest, lengths.back());
      squares += lengths.back() * lengths.back();
    }
    d.prompt += static_cast<double>(first.prompts[g].count()) / groups;
    d.group_end += longest / groups;
  }
  std::ranges::sort(lengths);
  const auto count = static_cast<double>(lengths.size());
  d.mean = std::accumulate(lengths.begin(), lengths.end(), 0.0) / count;
  d.residual = squares / count / (2 * d.mean);
  d.longest = lengths.back();
  for (std::size_t bin = 0; bin < BatchStatistics::kBins; ++bin) {
    const double begin = d.longest * static_cast<double>(bin) / BatchStatistics::kBins;
    const auto above = lengths.end() - std::ranges::upper_bound(lengths, begin);
    d.longer[bin] = static_cast<double>(above) / count;
  }
  for (std::size_t bin = BatchStatistics::kBins; bin-- > 0;) {
    const double part =
        (d.longer[bin] + d.longer[bin + 1]) / 2 * d.longest / BatchStatistics::kBins;
    d.left_over[bin] = d.left_over[bin + 1] + part / d.mean;
  }
  return d;
}

Engine::Engine(const actors::SimulationSettings& s)
    : cost(s),
      replicas(static_cast<double>(cost.replicas())),
      cache(static_cast<double>(actors::kv_tokens(s).count())),
      swap(actors::swap_seconds(sim_hw::make_fabric(s.cluster), s)) {
  if (s.config.rollout.prefill_cards > 0)
    prefill_instance.emplace(s);
}

double Engine::step(double b, double context) {
  const double whole = std::max(1.0, std::ceil(b - 1e-9));
  const auto running = static_cast<std::int64_t>(whole * replicas);
  const auto d = cost.decode({running, 0});
  return d.fixed + d.per_context * d.running * context;
}

double Engine::prefill_seconds(std::int64_t prompts, double tokens) {
  const std::int64_t each = std::max<std::int64_t>(1, std::llround(tokens));
  const auto [known, fresh] = prefill.try_emplace({prompts, each}, 0);
  if (fresh) {
    std::deque<rollout::PrefillPiece> pieces(static_cast<std::size_t>(prompts),
                                             rollout::PrefillPiece{.tokens = each});
    if (prefill_instance)
      known->second += prefill_instance->cost(std::exchange(pieces, {})).seconds;
    while (!pieces.empty()) {
      known->second += cost.prefill(pieces, 0);
      cost.finish_prefill(pieces);
    }
  }
  return known->second;
}

}  // namespace temper::study::steady
