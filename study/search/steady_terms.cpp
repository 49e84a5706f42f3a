#include "study/search/steady_terms.hpp"

#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/tool_calls.hpp"
#include "actors/simulation/weight_moves.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace temper::study::steady {

double ToolResults::longest(double expected) const {
  double out = 0, last = 0;
  for (std::size_t i = 0; i < kQuantiles; ++i) {
    const double longer = static_cast<double>(kQuantiles - i) / kQuantiles;
    out += (quantiles[i] - last) * (1 - std::exp(-expected * longer));
    last = quantiles[i];
  }
  return out;
}

BatchStatistics::BatchStatistics(const orchestrator::PipelineConfig& c,
                                 const actors::SimulationConfig& simulation) {
  const FirstBatch first = draw_first_batch(c, simulation);
  sequences_ = first.sequences();
  group_size_ = first.group_size;
  for (const Tokens prompt : first.prompts)
    prompt_ += static_cast<double>(prompt.count()) / static_cast<double>(first.prompts.size());
  for (const Tokens length : first.responses) {
    responses_.push_back({.sampled = static_cast<double>(length.count())});
    tokens_ += responses_.back().sampled;
  }
  tokens_ /= static_cast<double>(responses_.size());
  if (simulation.tools)
    add_calls(*simulation.tools, c.seed, first);
}

void BatchStatistics::add_calls(const actors::ToolConfig& tools,
                                std::uint64_t seed,
                                const FirstBatch& first) {
  const actors::ToolCalls calls(tools, seed);
  std::vector<double> results;
  double sampled = 0;
  for (std::size_t i = 0; i < responses_.size(); ++i) {
    ResponseWork& r = responses_[i];
    const ResponseId id(i);
    const std::int64_t length = first.responses[i].count();
    for (auto call = calls.left(id, length, 0).next; call; call = calls.after(id, length, *call)) {
      r.calls += 1;
      r.waiting += seconds(calls.latency(id, *call));
      r.sampled -= static_cast<double>(call->result);
      results.push_back(static_cast<double>(call->result));
      results_.before += static_cast<double>(first.prompt_of(i).count() + call->at);
    }
    sampled += r.sampled;
  }
  if (results.empty())
    return;
  const auto count = static_cast<double>(results.size());
  std::ranges::sort(results);
  results_.per_token = count / sampled;
  results_.before /= count;
  results_.mean = std::accumulate(results.begin(), results.end(), 0.0) / count;
  for (std::size_t i = 0; i < ToolResults::kQuantiles; ++i)
    results_.quantiles[i] = results[(2 * i + 1) * results.size() / (2 * ToolResults::kQuantiles)];
}

const Lifetimes& BatchStatistics::lifetimes(double seconds_per_step, double steps_per_call) {
  constexpr double kApart = 1.02;
  std::pair<std::int64_t, std::int64_t> at;
  if (has_calls()) {
    at = {std::llround(std::log(seconds_per_step) / std::log(kApart)),
          std::llround(2 * steps_per_call)};
  }
  auto known = lifetimes_.find(at);
  if (known == lifetimes_.end()) {
    const double rounded = std::pow(kApart, static_cast<double>(at.first));
    known = lifetimes_.emplace(at, compute(rounded, static_cast<double>(at.second) / 2)).first;
  }
  return known->second;
}

Lifetimes BatchStatistics::compute(double seconds_per_step, double steps_per_call) const {
  struct Stay {
    double steps = 0;
    double decoding = 0;  ///< Share of it.
  };
  Lifetimes d;
  d.prompt = prompt_;
  std::vector<Stay> stays;
  double squares = 0, steps = 0, sampled = 0;
  double longest = 0;  // Of the group.
  const std::size_t groups = responses_.size() / group_size_;
  for (const ResponseWork& r : responses_) {
    if (stays.size() % group_size_ == 0)
      longest = 0;
    const double stay = r.sampled + r.calls * steps_per_call + r.waiting / seconds_per_step;
    stays.push_back({stay, r.sampled / stay});
    squares += stay * stay;
    steps += stay;
    sampled += r.sampled;
    longest = std::max(longest, stay);
    if (stays.size() % group_size_ == 0)
      d.group_end += longest / static_cast<double>(groups);
  }
  std::ranges::sort(stays, {}, &Stay::steps);
  const auto count = static_cast<double>(stays.size());
  d.mean = steps / count;
  d.residual = squares / count / (2 * d.mean);
  d.longest = stays.back().steps;
  d.tokens_per_step = tokens_ / d.mean;
  d.decoding = sampled / steps;
  auto longer = stays.rbegin();
  double above = 0, decoders = 0;
  for (std::size_t bin = Lifetimes::kBins; bin-- > 0;) {
    const double begin = d.longest * static_cast<double>(bin) / Lifetimes::kBins;
    for (; longer != stays.rend() && longer->steps > begin; ++longer) {
      above += 1;
      decoders += longer->decoding;
    }
    d.longer[bin] = above / count;
    d.decoders[bin] = decoders / count;
  }
  for (std::size_t bin = Lifetimes::kBins; bin-- > 0;) {
    const double part = (d.longer[bin] + d.longer[bin + 1]) / 2 * d.longest / Lifetimes::kBins;
    d.left_over[bin] = d.left_over[bin + 1] + part / d.mean;
  }
  return d;
}

Engine::Engine(const actors::SimulationSettings& s)
    : cost_(s),
      chunked_prefill_(s.config.rollout.chunked_prefill),
      replicas_(static_cast<double>(cost_.replicas())),
      cache_(static_cast<double>(actors::kv_tokens(s).count())),
      swap_(actors::swap_seconds(sim_hw::make_fabric(s.cluster), s)) {
  if (s.config.rollout.prefill_cards > 0)
    prefill_instance_.emplace(s);
}

double Engine::step(double b, double context) {
  const double whole = std::max(1.0, std::ceil(b - 1e-9));
  const auto running = static_cast<std::int64_t>(whole * replicas_);
  const auto d = cost_.decode({running, 0});
  return d.fixed + d.per_context * d.running * context;
}

/// `decoding`: responses per replica that decode in the same steps; 0: none.
double Engine::prefill_all(std::deque<rollout::PrefillPiece> pieces, double decoding) const {
  double seconds = 0;
  while (!pieces.empty()) {
    seconds += cost_.prefill(pieces, std::llround(decoding * replicas_));
    cost_.finish_prefill(pieces);
  }
  return seconds;
}

double Engine::prefill_seconds(std::int64_t prompts, double tokens) {
  const std::int64_t each = std::max<std::int64_t>(1, std::llround(tokens));
  const auto [known, fresh] = prompts_.try_emplace({prompts, each}, 0);
  if (fresh) {
    std::deque<rollout::PrefillPiece> pieces(static_cast<std::size_t>(prompts),
                                             rollout::PrefillPiece{.tokens = each});
    if (prefill_instance_)
      known->second += prefill_instance_->cost(std::exchange(pieces, {})).seconds;
    known->second += prefill_all(std::move(pieces), 0);
  }
  return known->second;
}

double Engine::results_seconds(const ToolResults& results, double b) {
  if (prefill_instance_)
    return 0;
  const std::int64_t whole = std::max<std::int64_t>(1, std::llround(b));
  const auto [known, fresh] = results_.try_emplace({&results, whole}, 0);
  if (fresh)
    known->second = results_of_whole(results, whole);
  return known->second * b / static_cast<double>(whole);
}

/// A step with results has one of the expected longest length, and others up to the expected sum.
double Engine::results_of_whole(const ToolResults& results, std::int64_t b) const {
  const double expected = static_cast<double>(b) * replicas_ * results.per_token;
  const double some = 1 - std::exp(-expected);
  const std::int64_t longest =
      std::max<std::int64_t>(1, std::llround(results.longest(expected) / some));
  std::int64_t left = std::max<std::int64_t>(longest, std::llround(expected * results.mean / some));
  std::deque<rollout::PrefillPiece> pieces;
  for (; left > 0; left -= pieces.back().tokens)
    pieces.push_back({.tokens = std::min(left, longest), .offset = std::llround(results.before)});
  return some * prefill_all(std::move(pieces), chunked_prefill_ ? static_cast<double>(b) : 0);
}

double Engine::restore_seconds(double expected, double tokens) {
  if (expected <= 0 || prefill_instance_)
    return 0;
  constexpr std::int64_t kApart = 128;
  const std::int64_t rounded =
      kApart * std::max<std::int64_t>(1, std::llround(tokens / static_cast<double>(kApart)));
  const auto [known, fresh] = restored_.try_emplace(rounded, 0);
  if (fresh) {
    rollout::PrefillPiece piece{.tokens = rounded};
    piece.parked = cost_.copying_pays(piece);
    known->second = prefill_all({piece}, chunked_prefill_ ? 1 : 0);
  }
  return known->second * std::max(1 - std::exp(-expected), expected / replicas_);
}

double Engine::steps_per_call(const ToolResults& results, double seconds_per_step) const {
  constexpr double kUntilStepEnds = 0.5;
  if (prefill_instance_ && results.per_token > 0) {
    rollout::PrefillPiece piece{.tokens = std::max<std::int64_t>(1, std::llround(results.mean)),
                                .offset = std::llround(results.before)};
    piece.cached = piece.offset;
    return kUntilStepEnds + prefill_instance_->cost({piece}).seconds / seconds_per_step;
  }
  return kUntilStepEnds + (chunked_prefill_ ? 1 : 0);  // It decodes from the next step on.
}

}  // namespace temper::study::steady
