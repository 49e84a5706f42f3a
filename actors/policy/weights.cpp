#include "actors/policy/weights.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "actors/policy/internal/parallel.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

constexpr std::size_t kRoundedAtOnce = 1 << 21;  ///< Floats: few enough for the cache.

bool is_rounded(const Layout& layout, const std::vector<std::int64_t>& shape) {
  return layout.model().compute_dtype == ComputeType::Bfloat16 && shape.size() == 2;
}

}  // namespace

Weights Weights::random(const Layout& layout, std::uint64_t seed) {
  FloatBuffer values(layout.size());
  for (const TensorSpec& tensor : layout.tensors()) {
    float* out = values.data() + tensor.offset;
    if (tensor.shape.size() == 1) {
      std::fill_n(out, tensor.elements(), tensor.name.ends_with("bias") ? 0.0f : 1.0f);
      continue;
    }
    // 1/sqrt(fan-in) keeps activations near unit scale. The two projections into the residual
    // stream are scaled down with depth, so that the stream does not grow. With small embeddings
    // the layers have more influence: the addition task is learned in half the steps.
    const bool embedding = tensor.name == "embedding.weight";
    const bool writes_residual =
        tensor.name.ends_with("out.weight") || tensor.name.ends_with("down.weight");
    double scale = embedding ? 0.1 : 1.0 / std::sqrt(static_cast<double>(tensor.shape[1]));
    if (writes_residual)
      scale /= std::sqrt(2.0 * layout.model().layers);
    Random random(seed, tensor.name);
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      out[i] = static_cast<float>(scale * random.normal());
  }
  return Weights(layout, std::move(values));
}

Result<Weights> Weights::from_image(const Layout& layout, std::span<const std::byte> image) {
  TEMPER_TRY(const SafetensorsImage parsed, parse_safetensors(image));
  FloatBuffer values(layout.size());
  TEMPER_TRY_STATUS(copy_tensors(parsed, tensors_to_read(layout, values.span())));
  return Weights(layout, std::move(values));
}

Result<Weights> Weights::from_folder(const Layout& layout, const ModelFolder& folder) {
  FloatBuffer values(layout.size());
  TEMPER_TRY_STATUS(folder.read(tensors_to_read(layout, values.span())));
  return Weights(layout, std::move(values));
}

std::string Weights::to_image(const SafetensorsMetadata& metadata) const {
  return write_safetensors(tensors_to_write(layout_, values_.span()), metadata);
}

Status Weights::publish(const SafetensorsMetadata& metadata,
                        const std::function<Status(std::span<const std::byte>)>& write) const {
  const std::vector<TensorToWrite> tensors = tensors_to_write(layout_, values_.span());
  std::vector<TensorShape> shapes;
  for (const TensorToWrite& t : tensors)
    shapes.push_back({t.name,
                      t.shape,
                      is_rounded(layout_, t.shape) ? StoredType::Bfloat16 : StoredType::Float32});
  const std::string header = write_safetensors_header(shapes, metadata);
  TEMPER_TRY_STATUS(write(std::as_bytes(std::span(header))));
  std::vector<Bfloat16> rounded;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::span<const float> values = tensors[i].values;
    if (shapes[i].type == StoredType::Float32) {
      TEMPER_TRY_STATUS(write(std::as_bytes(values)));
      continue;
    }
    for (; !values.empty(); values = values.subspan(rounded.size())) {
      rounded.resize(std::min(values.size(), kRoundedAtOnce));
      round_array(values.data(), rounded.data(), std::ssize(rounded));
      TEMPER_TRY_STATUS(write(std::as_bytes(std::span(rounded))));
    }
  }
  return {};
}

TensorValues InferenceWeights::tensor(std::size_t index) const {
  const Place& place = places_[index];
  if (place.rounded)
    return {nullptr, reinterpret_cast<const Bfloat16*>(rounded_.data()) + place.begin};
  return {floats_.data() + place.begin, nullptr};
}

InferenceWeights::InferenceWeights(const Layout& layout) {
  constexpr std::int64_t kLine = 16;  // A cache line of floats.
  std::int64_t floats = 0;
  std::int64_t rounded = 0;
  for (const TensorSpec& t : layout.tensors()) {
    const bool is_short = is_rounded(layout, t.shape);
    std::int64_t& end = is_short ? rounded : floats;
    places_.push_back({is_short, end});
    end += (t.elements() + kLine - 1) / kLine * kLine;
  }
  floats_ = FloatBuffer(floats);
  rounded_ = FloatBuffer(rounded / 2);
}

/// Each stored tensor is a part of a tensor of the network.
std::vector<TensorToRead> InferenceWeights::destinations(const Layout& layout) {
  std::vector<TensorToRead> list = tensors_to_check(layout);
  std::size_t of = 0;
  for (std::size_t i = 0; i < layout.stored().size(); ++i) {
    const TensorSpec& stored = layout.stored()[i];
    while (of + 1 < places_.size() && stored.offset >= layout.tensors()[of + 1].offset)
      ++of;
    const std::int64_t begin = places_[of].begin + stored.offset - layout.tensors()[of].offset;
    const auto size = static_cast<std::size_t>(stored.elements());
    if (places_[of].rounded)
      list[i].rounded = {reinterpret_cast<Bfloat16*>(rounded_.data()) + begin, size};
    else
      list[i].values = {floats_.data() + begin, size};
  }
  if (!list.back().tied_to.empty()) {
    list.back().rounded = list.front().rounded;
    list.back().values = list.front().values;
  }
  return list;
}

Result<InferenceWeights> InferenceWeights::from_image(const Layout& layout,
                                                      std::span<const std::byte> image) {
  TEMPER_TRY(const SafetensorsImage parsed, parse_safetensors(image));
  InferenceWeights weights(layout);
  TEMPER_TRY_STATUS(copy_tensors(parsed, weights.destinations(layout)));
  return weights;
}

Result<InferenceWeights> InferenceWeights::from_folder(const Layout& layout,
                                                       const ModelFolder& folder) {
  InferenceWeights weights(layout);
  TEMPER_TRY_STATUS(folder.read(weights.destinations(layout)));
  return weights;
}

}  // namespace temper::actors
