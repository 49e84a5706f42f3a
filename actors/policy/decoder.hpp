// The policy for generation: no gradients, with a KV cache. One call takes any mix of rows, each a
// token at a position of a slot, so prefill (many rows of one slot) and decode (one row per slot)
// are the same computation without padding. The cost of a call is proportional to its rows. Not
// thread-safe.
#pragma once

#include "actors/policy/weights.hpp"

#include <memory>
#include <span>
#include <vector>

namespace temper::actors {

/// Time by kind of operation, summed over calls.
struct DecoderProfile {
  Duration matmul{};
  Duration attention{};
  Duration norm{};
  Duration activation{};
  Duration other{};
};

/// One input token. Requires: every earlier position of the slot is in its cache or in an earlier
/// row of the same call.
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

  /// Allocates the zeroed KV cache, slots x context positions. The constructor does so, too.
  void allocate_cache();
  void free_cache();
  Bytes cache_bytes() const;

  enum class Output { Nothing, Logits };
  /// Writes keys and values of every row to the cache. With Output::Logits returns the logits of
  /// every row ([rows, vocabulary]), valid until the next call; the caller may overwrite them.
  /// Requires: slots, positions and tokens are in range, and the cache is allocated.
  std::span<float> forward(const WeightsView& weights,
                           std::span<const DecoderRow> rows,
                           Output output);
  /// Copies the first `positions` positions of one slot's cache to another slot.
  void copy_slot(std::int32_t from, std::int32_t to, std::int32_t positions);

  /// Enables profiling, which costs a few clock reads per layer.
  void enable_profile();
  const DecoderProfile& profile() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace temper::actors
