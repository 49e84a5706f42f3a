#include "trainer/torch/trained_policy.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"

#include <algorithm>

namespace temper::trainer {

Result<TrainedPolicy> TrainedPolicy::initial(const actors::Layout& layout,
                                             const actors::ModelFolder& base,
                                             std::uint64_t seed) {
  if (!layout.model().lora) {
    TEMPER_TRY(auto weights, actors::Weights::from_folder(layout, base));
    return TrainedPolicy(std::move(weights));
  }
  TEMPER_TRY(auto frozen, actors::InferenceWeights::from_folder(layout, base));
  return with_adapter(layout, std::move(frozen), base.path(), seed);
}

Result<TrainedPolicy> TrainedPolicy::with_adapter(const actors::Layout& layout,
                                                  actors::InferenceWeights frozen,
                                                  const std::filesystem::path& base,
                                                  std::uint64_t seed) {
  TEMPER_TRY(const auto of_adapter, actors::AdapterLayout::make(layout, *layout.model().lora));
  const std::filesystem::path first = base / actors::kFirstAdapterFolder;
  if (!actors::is_adapter_folder(first))
    return TrainedPolicy(layout, std::move(frozen), actors::Adapter::initial(of_adapter, seed));
  TEMPER_TRY(const std::vector<float> values, actors::read_adapter(first, of_adapter));
  actors::Adapter adapter(of_adapter);
  std::ranges::copy(values, adapter.values().span().begin());
  return TrainedPolicy(layout, std::move(frozen), std::move(adapter));
}

actors::Transformer TrainedPolicy::make_network() {
  if (auto* adapted = std::get_if<Adapted>(&held_))
    return {layout_, adapted->frozen, adapted->adapter};
  return actors::Transformer(std::get<actors::Weights>(held_));
}

actors::FloatBuffer& TrainedPolicy::values() {
  if (auto* adapted = std::get_if<Adapted>(&held_))
    return adapted->adapter.values();
  return std::get<actors::Weights>(held_).values();
}

actors::TrainedFloats TrainedPolicy::trained() {
  if (auto* adapted = std::get_if<Adapted>(&held_))
    return adapted->adapter;
  return std::get<actors::Weights>(held_);
}

std::vector<actors::TensorToWrite> TrainedPolicy::tensors_to_write(std::span<const float> flat,
                                                                   std::string_view prefix) const {
  return adapter() != nullptr ? actors::tensors_to_write(adapter()->layout(), flat, prefix)
                              : actors::tensors_to_write(layout(), flat, prefix);
}

std::vector<actors::TensorToRead> TrainedPolicy::tensors_to_read(std::span<float> flat,
                                                                 std::string_view prefix) const {
  return adapter() != nullptr ? actors::tensors_to_read(adapter()->layout(), flat, prefix)
                              : actors::tensors_to_read(layout(), flat, prefix);
}

Status TrainedPolicy::publish(const actors::SafetensorsMetadata& metadata,
                              const ImageWriter& write) const {
  return adapter() != nullptr ? adapter()->publish(metadata, write)
                              : weights().publish(metadata, write);
}

Bytes TrainedPolicy::bytes() const {
  if (const auto* adapted = std::get_if<Adapted>(&held_))
    return adapted->frozen.bytes() + adapted->adapter.values().bytes();
  return weights().values().bytes();
}

}  // namespace temper::trainer
