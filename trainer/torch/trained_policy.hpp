// What the trainer trains: all weights, or an adapter beside frozen ones.
#pragma once

#include "actors/policy/adamw.hpp"
#include "actors/policy/adapter.hpp"
#include "actors/policy/weights.hpp"
#include "trainer/engine.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace temper::trainer {

class TrainedPolicy {
 public:
  TrainedPolicy(actors::Weights weights)  // NOLINT(google-explicit-constructor)
      : weights_(std::move(weights)) {}
  /// The weights are frozen. Requires: the adapter's layout was made for them.
  TrainedPolicy(actors::Weights weights, actors::Adapter adapter)
      : weights_(std::move(weights)), adapter_(std::move(adapter)) {}
  /// The policy with which a run starts: with model.lora, the adapter in the folder
  /// kFirstAdapterFolder of `base`, or, if there is none, an initial one. Errors: InvalidInput for
  /// targets that the model does not have; those of read_adapter().
  static Result<TrainedPolicy> initial(actors::Weights weights,
                                       std::uint64_t seed,
                                       const std::filesystem::path& base);

  const actors::Layout& layout() const { return weights_.layout(); }
  actors::Weights& weights() { return weights_; }
  /// Null if all weights are trained. Valid as long as the policy is not moved.
  actors::Adapter* adapter() { return adapter_ ? &*adapter_ : nullptr; }
  const actors::Adapter* adapter() const { return adapter_ ? &*adapter_ : nullptr; }

  /// The trained floats: the weights, or the adapter.
  actors::FloatBuffer& values() { return adapter_ ? adapter_->values() : weights_.values(); }
  const actors::FloatBuffer& values() const {
    return adapter_ ? adapter_->values() : weights_.values();
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
  actors::Weights weights_;
  std::optional<actors::Adapter> adapter_;
};

}  // namespace temper::trainer
