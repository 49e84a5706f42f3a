// What the trainer trains: all weights, or an adapter beside frozen ones.
#pragma once

#include "actors/policy/adamw.hpp"
#include "actors/policy/adapter.hpp"
#include "actors/policy/transformer.hpp"
#include "actors/policy/weights.hpp"
#include "trainer/engine.hpp"

#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace temper::trainer {

class TrainedPolicy {
 public:
  TrainedPolicy(actors::Weights weights)  // NOLINT(google-explicit-constructor)
      : layout_(weights.layout()), held_(std::move(weights)) {}
  /// The weights are frozen. Requires: they and the adapter have been made for this layout.
  TrainedPolicy(const actors::Layout& layout,
                actors::InferenceWeights frozen,
                actors::Adapter adapter)
      : layout_(layout), held_(Adapted{std::move(frozen), std::move(adapter)}) {}
  /// The policy with which a run starts. Errors: those of reading the weights, and of
  /// with_adapter().
  static Result<TrainedPolicy> initial(const actors::Layout& layout,
                                       const actors::ModelFolder& base,
                                       std::uint64_t seed);
  /// With the adapter in the folder kFirstAdapterFolder of `base`, or, if there is none, an initial
  /// one. Errors: InvalidInput for targets that the model does not have; those of read_adapter().
  /// Requires: the layout has model.lora.
  static Result<TrainedPolicy> with_adapter(const actors::Layout& layout,
                                            actors::InferenceWeights frozen,
                                            const std::filesystem::path& base,
                                            std::uint64_t seed);

  const actors::Layout& layout() const { return layout_; }
  /// Requires: all weights are trained.
  const actors::Weights& weights() const { return std::get<actors::Weights>(held_); }
  /// Null if all weights are trained. Valid as long as the policy is not moved.
  const actors::Adapter* adapter() const {
    const auto* adapted = std::get_if<Adapted>(&held_);
    return adapted != nullptr ? &adapted->adapter : nullptr;
  }
  /// A network of these weights. Borrows this policy, which must not be moved meanwhile.
  actors::Transformer make_network();

  /// The trained floats: the weights, or the adapter.
  actors::FloatBuffer& values();
  const actors::FloatBuffer& values() const {
    return adapter() != nullptr ? adapter()->values() : weights().values();
  }
  actors::TrainedFloats trained();
  /// Views of a flat array with the places of values().
  std::vector<actors::TensorToWrite> tensors_to_write(std::span<const float> flat,
                                                      std::string_view prefix = "") const;
  std::vector<actors::TensorToRead> tensors_to_read(std::span<float> flat,
                                                    std::string_view prefix = "") const;

  /// Writes the image of a version: what is trained. Errors: those of `write`.
  Status publish(const actors::SafetensorsMetadata& metadata, const ImageWriter& write) const;
  /// Weights and adapter.
  Bytes bytes() const;

 private:
  struct Adapted {
    actors::InferenceWeights frozen;
    actors::Adapter adapter;
  };

  actors::Layout layout_;
  std::variant<actors::Weights, Adapted> held_;
};

}  // namespace temper::trainer
