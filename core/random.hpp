// Random streams: one seed per run, and one stream per consumer, derived from (seed, name). The
// generator (xoshiro256**, Blackman and Vigna 2018) and all distributions are implemented here, so
// the same seed gives the same numbers on every machine. The state of a stream can be stored.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace temper {

class Random {
 public:
  using State = std::array<std::uint64_t, 4>;

  Random(std::uint64_t seed, std::string_view stream);
  explicit Random(const State& state) : state_(state) {}

  std::uint64_t next();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in [0, n), without modulo bias. Requires: n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Standard normal (Box-Muller; consumes two uniform numbers per call).
  double normal();
  bool chance(double probability) { return uniform() < probability; }

  const State& state() const { return state_; }

 private:
  State state_;
};

/// A bijection of [0, n) fixed by the key: element `i` of a shuffled sequence, without storing it.
/// Requires: i < n. (Feistel network over the next power of four, cycle-walking.)
std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t key);

}  // namespace temper
