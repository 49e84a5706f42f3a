#include "actors/policy/weights.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <cmath>

namespace temper::actors {

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
    shapes.push_back({t.name, t.shape});
  const std::string header = write_safetensors_header(shapes, metadata, StoredType::Float32);
  TEMPER_TRY_STATUS(write(std::as_bytes(std::span(header))));
  for (const TensorToWrite& t : tensors)
    TEMPER_TRY_STATUS(write(std::as_bytes(t.values)));
  return {};
}

}  // namespace temper::actors
