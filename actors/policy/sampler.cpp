#include "actors/policy/sampler.hpp"

#include "actors/policy/internal/kernels.hpp"

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

SampledToken Sampler::draw(std::span<const float> logits, double uniform) {
  p_.resize(logits.size());
  const auto width = static_cast<std::int64_t>(logits.size());
  const float log_sum = softmax(logits.data(), p_.data(), width, static_cast<float>(temperature_));
  if (!std::isfinite(log_sum))
    return {-1, 0};
  if (top_p_ < 1)
    cut_nucleus();
  const double mass = std::accumulate(p_.begin(), p_.end(), 0.0);
  const double goal = uniform * mass;
  double sum = 0;
  std::int32_t chosen = 0;
  for (std::size_t i = 0; i < p_.size(); ++i) {
    if (p_[i] <= 0)
      continue;
    chosen = static_cast<std::int32_t>(i);
    sum += static_cast<double>(p_[i]);
    if (sum > goal)
      break;
  }
  const double p = static_cast<double>(p_[static_cast<std::size_t>(chosen)]);
  return {chosen, static_cast<float>(std::log(p / mass))};
}

SampledToken Sampler::likeliest(std::span<const float> logits) {
  p_.resize(logits.size());
  const auto width = static_cast<std::int64_t>(logits.size());
  const float log_sum = softmax(logits.data(), p_.data(), width, static_cast<float>(temperature_));
  if (!std::isfinite(log_sum))
    return {-1, 0};
  const auto most = std::ranges::max_element(p_);
  return {static_cast<std::int32_t>(most - p_.begin()), std::log(*most)};
}

void Sampler::cut_nucleus() {
  order_.resize(p_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto p = [&](std::int32_t i) -> float& { return p_[static_cast<std::size_t>(i)]; };
  std::stable_sort(
      order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) { return p(a) > p(b); });
  double sum = 0;
  for (const std::int32_t token : order_) {
    if (sum >= top_p_)
      p(token) = 0;
    else
      sum += static_cast<double>(p(token));
  }
}

}  // namespace temper::actors
