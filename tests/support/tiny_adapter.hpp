// Adapters for the tiny policy.
#pragma once

#include "actors/policy/adapter.hpp"
#include "tests/support/tiny_policy.hpp"

#include <gtest/gtest.h>

namespace temper::tests {

inline actors::ModelConfig lora_model(const actors::LoraConfig& lora = {.rank = 3, .alpha = 6}) {
  actors::ModelConfig model = tiny_model();
  model.lora = lora;
  return model;
}

inline actors::AdapterLayout tiny_adapter_layout(const actors::LoraConfig& lora = {.rank = 3,
                                                                                   .alpha = 6}) {
  return actors::AdapterLayout::make(tiny_layout(), lora).value();
}

/// The same weights as a trainer of adapters holds them.
inline actors::InferenceWeights frozen(const actors::Weights& weights) {
  const std::string image = weights.to_image({});
  return actors::InferenceWeights::from_image(weights.layout(), bytes_of(image)).value();
}

/// An adapter whose A and B are both nonzero.
inline actors::Adapter random_adapter(std::uint64_t seed,
                                      const actors::LoraConfig& lora = {.rank = 3, .alpha = 6}) {
  actors::Adapter adapter(tiny_adapter_layout(lora));
  Random random(seed, "values of an adapter");
  for (const actors::TensorSpec& t : adapter.layout().tensors()) {
    for (std::int64_t i = 0; i < t.elements(); ++i)
      adapter.values().data()[t.offset + i] = static_cast<float>(0.2 * random.normal());
  }
  return adapter;
}

inline std::string image_of(const actors::Adapter& adapter) {
  std::string image;
  EXPECT_TRUE(adapter.publish({}, [&](std::span<const std::byte> part) {
    image.append(reinterpret_cast<const char*>(part.data()), part.size());
    return Status();
  }));
  return image;
}

/// The tiny weights with the adapter merged.
inline actors::Weights merged(const actors::Adapter& adapter) {
  actors::Weights weights = tiny_weights();
  actors::merge_adapter(
      adapter.layout(), adapter.values().span(), weights.layout(), weights.values().span());
  return weights;
}

}  // namespace temper::tests
