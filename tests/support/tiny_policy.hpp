// A model small enough to check by hand, and batches for it.
#pragma once

#include "actors/policy/weights.hpp"
#include "core/random.hpp"
#include "trainer/engine.hpp"

#include <vector>

namespace temper::tests {

inline actors::ModelConfig tiny_model() {
  actors::ModelConfig model;
  model.hidden = 16;
  model.layers = 2;
  model.heads = 4;
  model.kv_heads = 2;
  model.ffn = 24;
  model.context = Tokens(24);
  return model;
}

constexpr std::int32_t kVocabulary = 11;

inline actors::Layout tiny_layout() {
  return actors::Layout::make(tiny_model(), kVocabulary).value();
}

inline actors::Weights tiny_weights(std::uint64_t seed = 7) {
  return actors::Weights::random(tiny_layout(), seed);
}

inline std::string tiny_image(std::uint64_t seed = 7) {
  return tiny_weights(seed).to_image({});
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Tokens above pad and end.
inline std::vector<std::int32_t> random_tokens(Random& random, std::size_t n) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < n; ++i)
    tokens.push_back(2 + static_cast<std::int32_t>(random.below(kVocabulary - 2)));
  return tokens;
}

/// `groups` groups of four responses with rewards 0 or 1; log-probs off the current ones.
inline std::vector<trainer::TrainSample> training_batch(std::uint64_t seed,
                                                        std::uint64_t groups = 4) {
  Random random(seed, "batch");
  std::vector<trainer::TrainSample> list;
  for (std::uint64_t g = 0; g < groups; ++g) {
    const auto prompt = random_tokens(random, 3 + random.below(3));
    for (std::uint64_t i = 0; i < 4; ++i) {
      trainer::TrainSample s;
      s.group = GroupId(g);
      s.prompt = prompt;
      s.response = random_tokens(random, 1 + random.below(5));
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        s.behaviour_logprobs.push_back(static_cast<float>(-2.4 + 0.3 * random.normal()));
        s.reference_logprobs.push_back(static_cast<float>(-2.4 + 0.3 * random.normal()));
      }
      s.reward = i == g % 4 || random.chance(0.5) ? 1 : 0;
      list.push_back(std::move(s));
    }
  }
  return list;
}

}  // namespace temper::tests
