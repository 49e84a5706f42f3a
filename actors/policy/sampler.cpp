#include "actors/policy/sampler.hpp"

#include "actors/policy/internal/kernels.hpp"
#include "actors/policy/internal/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::actors {

namespace {
/// The finalizer of splitmix64: every input bit affects every output bit.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
}  // namespace

double sampling_uniform(std::uint64_t seed, ResponseId response, std::int64_t position) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t of_response = mix(mix(seed + kGolden) + response.value() + kGolden);
  const std::uint64_t bits =
      mix(of_response + (static_cast<std::uint64_t>(position) + 1) * kGolden);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

SampledToken Sampler::draw(std::span<float> p, double uniform) const {
  const auto width = static_cast<std::int64_t>(p.size());
  const float log_sum = softmax(p.data(), p.data(), width, static_cast<float>(temperature_));
  if (!std::isfinite(log_sum))
    return {-1, 0};
  if (top_p_ < 1)
    cut_nucleus(p);
  const double mass = std::accumulate(p.begin(), p.end(), 0.0);
  const double goal = uniform * mass;
  double sum = 0;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] <= 0)
      continue;
    chosen = i;
    sum += static_cast<double>(p[i]);
    if (sum > goal)
      break;
  }
  return {static_cast<std::int32_t>(chosen),
          static_cast<float>(std::log(static_cast<double>(p[chosen]) / mass))};
}

SampledToken Sampler::likeliest(std::span<float> p) const {
  const auto width = static_cast<std::int64_t>(p.size());
  const float log_sum = softmax(p.data(), p.data(), width, static_cast<float>(temperature_));
  if (!std::isfinite(log_sum))
    return {-1, 0};
  const auto most = std::ranges::max_element(p);
  return {static_cast<std::int32_t>(most - p.begin()), std::log(*most)};
}

std::vector<SampledToken> Sampler::sample(std::span<float> logits,
                                          std::span<const Choice> choices) const {
  std::vector<SampledToken> out(choices.size());
  if (choices.empty())
    return out;
  const std::size_t width = logits.size() / choices.size();
  for_each_range(std::ssize(choices),
                 static_cast<std::int64_t>(width),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                        ++i) {
                     const auto row = logits.subspan(i * width, width);
                     out[i] = choices[i].greedy ? likeliest(row) : draw(row, choices[i].uniform);
                   }
                 });
  return out;
}

void Sampler::cut_nucleus(std::span<float> p) const {
  std::vector<std::int32_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t i) -> float& { return p[static_cast<std::size_t>(i)]; };
  std::stable_sort(
      order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return at(a) > at(b); });
  double sum = 0;
  for (const std::int32_t token : order) {
    if (sum >= top_p_)
      at(token) = 0;
    else
      sum += static_cast<double>(at(token));
  }
}

}  // namespace temper::actors
