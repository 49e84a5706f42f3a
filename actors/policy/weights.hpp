// The weights of one policy: a flat array with a Layout, initialized at random or read from a
// safetensors image.
#pragma once

#include "actors/model_folder/layout.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/safetensors.hpp"
#include "actors/policy/float_buffer.hpp"

#include <functional>
#include <span>
#include <string>

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
  /// Writes the same image in parts; the first error of `write` ends it.
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

}  // namespace temper::actors
