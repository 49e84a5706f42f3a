// Tensors that simulated responses have besides their tokens: expert routes, images, hidden states.
// What they cost: actors/simulation/tensor_fetch.hpp.
#pragma once

#include "core/describe.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

#include <vector>

namespace temper::actors {

struct TensorConfig {
  Bytes per_token{};
  Bytes per_response{};
  double link_share = 1;

  bool any() const { return per_token > Bytes(0) || per_response > Bytes(0); }
  /// Bytes of one response. `tokens`: of its prompt and its response.
  Bytes of(Tokens tokens) const { return per_token * tokens.count() + per_response; }
};
void describe(auto& v, TensorConfig& c) {
  v.field(1,
          "per_token",
          c.per_token,
          {.doc = "Bytes of each token of prompt and response; expert routes take layers with "
                  "experts x experts per token x bytes of an id.",
           .min = Bytes(0),
           .max = Bytes(1'000'000'000)});
  v.field(2,
          "per_response",
          c.per_response,
          {.doc = "Bytes of each response besides.",
           .min = Bytes(0),
           .max = Bytes(std::int64_t{1} << 40)});
  v.field(3,
          "link_share",
          c.link_share,
          {.doc = "Share of the bandwidth of links that the store reaches when the trainer reads "
                  "from it.",
           .min = 0.0001,
           .max = 1.0});
}

/// The cards whose hosts write and read tensors.
struct TensorPlaces {
  std::vector<CardId> engines, trainer;
};
void describe(auto& v, TensorPlaces& c) {
  v.field(1, "engines", c.engines);
  v.field(2, "trainer", c.trainer);
}

}  // namespace temper::actors
