// The weights of one policy: a flat array of floats with a Layout, initialized at random or read
// from a safetensors image; and weights for generation only, whose matrices may be bfloat16.
#pragma once

#include "actors/model_folder/layout.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/safetensors.hpp"
#include "actors/policy/adapter.hpp"
#include "actors/policy/float_buffer.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace temper::actors {

class Weights {
 public:
  /// Zero weights.
  explicit Weights(const Layout& layout) : layout_(layout), values_(layout.size()) {}
  /// Normally distributed with standard deviation 1/sqrt(fan-in), smaller for projections into the
  /// residual stream; norms are 1, biases 0.
  static Weights random(const Layout& layout, std::uint64_t seed);
  /// Error: Corrupt, naming the tensor.
  static Result<Weights> from_image(const Layout& layout, std::span<const std::byte> image);
  /// Errors name the file and the tensor.
  static Result<Weights> from_folder(const Layout& layout, const ModelFolder& folder);

  std::string to_image(const SafetensorsMetadata& metadata) const;
  /// Writes an image for generation: matrices as the layout's model computes with them, vectors in
  /// float32. `write` gets the parts in order; its first error ends it.
  Status publish(const SafetensorsMetadata& metadata,
                 const std::function<Status(std::span<const std::byte>)>& write) const;
  Weights clone() const { return Weights(layout_, values_.clone()); }

  const Layout& layout() const { return layout_; }
  /// The values of one tensor, owned by this object. Requires: index < layout().tensors().size().
  const float* tensor(std::size_t index) const {
    return values_.data() + layout_.tensors()[index].offset;
  }
  FloatBuffer& values() { return values_; }
  const FloatBuffer& values() const { return values_; }

 private:
  Weights(const Layout& layout, FloatBuffer values) : layout_(layout), values_(std::move(values)) {}

  Layout layout_;
  FloatBuffer values_;
};

/// The values of a tensor; one of the two is null.
struct TensorValues {
  const float* floats = nullptr;
  const Bfloat16* rounded = nullptr;
};

/// Weights that are read and not trained. With `compute_dtype: bfloat16`, matrices need 2 bytes a
/// parameter.
class InferenceWeights {
 public:
  /// Rounds what the image has in float32, if necessary. Error: Corrupt, naming the tensor.
  static Result<InferenceWeights> from_image(const Layout& layout,
                                             std::span<const std::byte> image);
  /// The same from a folder. Errors name the file and the tensor.
  static Result<InferenceWeights> from_folder(const Layout& layout, const ModelFolder& folder);

  /// Owned by this object. Requires: index < layout.tensors().size().
  TensorValues tensor(std::size_t index) const;
  Bytes bytes() const { return floats_.bytes() + rounded_.bytes(); }

 private:
  explicit InferenceWeights(const Layout& layout);
  std::vector<TensorToRead> destinations(const Layout& layout);

  struct Place {
    bool rounded = false;
    std::int64_t begin = 0;  ///< In the array of its type.
  };

  std::vector<Place> places_;  ///< By index of the tensor.
  FloatBuffer floats_;
  FloatBuffer rounded_;  ///< Memory of bfloat16, two in a float.
};

/// Consecutive rows of a pass that are computed with the same adapter.
struct AdapterRows {
  const Adapter* adapter = nullptr;
  std::int64_t rows = 0;
};

/// The tensors of either kind of weights, and the adapters beside them. All must outlive it.
class WeightsView {
 public:
  WeightsView(const Weights& w) : floats_(&w) {}              // NOLINT(google-explicit-constructor)
  WeightsView(const InferenceWeights& w) : inference_(&w) {}  // NOLINT(google-explicit-constructor)
  /// The rows of `adapters` are those of the pass, in order; no adapter is null.
  WeightsView(const InferenceWeights& w, std::vector<AdapterRows> adapters)
      : inference_(&w), adapters_(std::move(adapters)) {}
  TensorValues tensor(std::size_t index) const {
    return floats_ != nullptr ? TensorValues{floats_->tensor(index)} : inference_->tensor(index);
  }
  /// Empty: no row has an adapter.
  std::span<const AdapterRows> adapters() const { return adapters_; }

 private:
  const Weights* floats_ = nullptr;
  const InferenceWeights* inference_ = nullptr;
  std::vector<AdapterRows> adapters_;
};

}  // namespace temper::actors
