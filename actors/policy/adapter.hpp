// The values of an adapter (LoRA): a flat array of floats with an AdapterLayout. The weights of the
// base are never changed, so any version can follow any other.
#pragma once

#include "actors/model_folder/adapter_layout.hpp"
#include "actors/model_folder/safetensors.hpp"
#include "actors/policy/float_buffer.hpp"

#include <functional>
#include <span>

namespace temper::actors {

class Adapter {
 public:
  /// Zero values.
  explicit Adapter(const AdapterLayout& layout) : layout_(layout), values_(layout.size()) {}
  /// As peft: A uniform in +-1 / sqrt(in), drawn from the seed and the name of the tensor; B zero,
  /// so the policy is that of the base.
  static Adapter initial(const AdapterLayout& layout, std::uint64_t seed);
  /// Error: Corrupt, naming the tensor.
  static Result<Adapter> from_image(const AdapterLayout& layout, std::span<const std::byte> image);

  /// Writes a safetensors image in float32. `write` gets the parts in order; its first error ends
  /// it.
  Status publish(const SafetensorsMetadata& metadata,
                 const std::function<Status(std::span<const std::byte>)>& write) const;

  const AdapterLayout& layout() const { return layout_; }
  FloatBuffer& values() { return values_; }
  const FloatBuffer& values() const { return values_; }

 private:
  AdapterLayout layout_;
  FloatBuffer values_;
};

}  // namespace temper::actors
