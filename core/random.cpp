#include "core/random.hpp"

#include "core/check.hpp"
#include "core/hash.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

namespace temper {
namespace {

std::uint64_t splitmix(std::uint64_t& x) {
  std::uint64_t z = (x += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view stream) {
  std::uint64_t x = hash64(stream, seed);
  for (auto& word : state_)
    word = splitmix(x);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::uint64_t Random::below(std::uint64_t n) {
  TEMPER_DCHECK(n > 0, "below(0) has no value");
  const std::uint64_t limit = -n % n;  // 2^64 mod n: values under it would bias the remainder
  std::uint64_t x = next();
  while (x < limit)
    x = next();
  return x % n;
}

double Random::normal() {
  const double u = 1.0 - uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t key) {
  TEMPER_DCHECK(i < n, "index outside the permutation");
  const int half = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  const std::uint64_t mask = (1ULL << half) - 1;
  do {
    std::uint64_t left = i >> half, right = i & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      std::uint64_t x = key + round * 0x9e3779b97f4a7c15ULL + right;
      left ^= splitmix(x) & mask;
      std::swap(left, right);
    }
    i = (left << half) | right;
  } while (i >= n);
  return i;
}

}  // namespace temper
