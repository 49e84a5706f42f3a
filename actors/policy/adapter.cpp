#include "actors/policy/adapter.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "actors/policy/sampler.hpp"
#include "core/hash.hpp"

#include <cmath>

namespace temper::actors {

Adapter Adapter::initial(const AdapterLayout& layout, std::uint64_t seed) {
  Adapter adapter(layout);
  const auto& tensors = layout.tensors();
  for (std::size_t i = 0; i < tensors.size(); i += 2) {  // A is followed by its B.
    const double bound = 1 / std::sqrt(static_cast<double>(tensors[i].shape[1]));
    const ResponseId stream(hash64(tensors[i].name));
    float* out = adapter.values_.data() + tensors[i].offset;
    for (std::int64_t j = 0; j < tensors[i].elements(); ++j)
      out[j] = static_cast<float>(bound * (2 * sampling_uniform(seed, stream, j) - 1));
  }
  return adapter;
}

Result<Adapter> Adapter::from_image(const AdapterLayout& layout, std::span<const std::byte> image) {
  TEMPER_TRY(const SafetensorsImage parsed, parse_safetensors(image));
  Adapter adapter(layout);
  TEMPER_TRY_STATUS(copy_tensors(parsed, tensors_to_read(layout, adapter.values_.span())));
  return adapter;
}

Status Adapter::publish(const SafetensorsMetadata& metadata,
                        const std::function<Status(std::span<const std::byte>)>& write) const {
  const std::string image =
      write_safetensors(tensors_to_write(layout_, values_.span()), metadata, StoredType::Float32);
  return write(std::as_bytes(std::span(image)));
}

}  // namespace temper::actors
