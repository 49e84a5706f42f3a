// The policy without gradients and with a KV cache: what generation runs. One call takes any mix of
// rows, each a token at a position of a slot, so prefill (many rows of a slot) and decode (one row
// of each) are the same computation, and there is no padding. The cost of a call is proportional to
// its rows. Not thread-safe.
#pragma once

#include "actors/policy/weights.hpp"

#include <memory>
#include <span>
#include <vector>

namespace temper::actors {

/// Time spent by kind, summed over calls; a layer's share of it is what a profile shows.
struct DecoderProfile {
  Duration matmul{};
  Duration attention{};
  Duration norm{};
  Duration activation{};
  Duration other{};
};

/// One token to feed. Its slot's cache must hold, or this call must bring in earlier rows, every
/// position before it.
struct DecoderRow {
  std::int32_t token = 0;
  std::int32_t slot = 0;
  std::int32_t position = 0;
};

class Decoder {
 public:
  Decoder(const Layout& layout, std::int32_t slots);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// The KV cache: slots x context positions, zeroed. Allocated by the constructor.
  void allocate_cache();
  void free_cache();
  Bytes cache_bytes() const;

  enum class Want { Nothing, Logits };
  /// Writes keys and values of every row to the cache and, if wanted, returns the logits of every
  /// row ([rows, vocabulary]), valid until the next call. Requires: slots, positions and tokens in
  /// range; the cache allocated.
  std::span<const float> forward(const Weights& weights,
                                 std::span<const DecoderRow> rows,
                                 Want want);
  /// Copies the first `positions` of one slot's cache to another.
  void copy_slot(std::int32_t from, std::int32_t to, std::int32_t positions);

  /// Measures from now on (costs a few clock reads a layer).
  void enable_profile();
  const DecoderProfile& profile() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace temper::actors
