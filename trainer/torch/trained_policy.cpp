#include "trainer/torch/trained_policy.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"

#include <algorithm>

namespace temper::trainer {

Result<TrainedPolicy> TrainedPolicy::initial(actors::Weights weights,
                                             std::uint64_t seed,
                                             const std::filesystem::path& base) {
  const auto& lora = weights.layout().model().lora;
  if (!lora)
    return TrainedPolicy(std::move(weights));
  TEMPER_TRY(const auto layout, actors::AdapterLayout::make(weights.layout(), *lora));
  const std::filesystem::path first = base / actors::kFirstAdapterFolder;
  if (!actors::is_adapter_folder(first))
    return TrainedPolicy(std::move(weights), actors::Adapter::initial(layout, seed));
  TEMPER_TRY(const std::vector<float> values, actors::read_adapter(first, layout));
  actors::Adapter adapter(layout);
  std::ranges::copy(values, adapter.values().span().begin());
  return TrainedPolicy(std::move(weights), std::move(adapter));
}

actors::TrainedFloats TrainedPolicy::trained() {
  if (adapter_)
    return *adapter_;
  return weights_;
}

std::vector<actors::TensorToWrite> TrainedPolicy::tensors_to_write(std::span<const float> flat,
                                                                   std::string_view prefix) const {
  return adapter_ ? actors::tensors_to_write(adapter_->layout(), flat, prefix)
                  : actors::tensors_to_write(layout(), flat, prefix);
}

std::vector<actors::TensorToRead> TrainedPolicy::tensors_to_read(std::span<float> flat,
                                                                 std::string_view prefix) const {
  return adapter_ ? actors::tensors_to_read(adapter_->layout(), flat, prefix)
                  : actors::tensors_to_read(layout(), flat, prefix);
}

Status TrainedPolicy::publish(const actors::SafetensorsMetadata& metadata,
                              const ImageWriter& write) const {
  return adapter_ ? adapter_->publish(metadata, write) : weights_.publish(metadata, write);
}

Bytes TrainedPolicy::bytes() const {
  return weights_.values().bytes() + (adapter_ ? adapter_->values().bytes() : Bytes(0));
}

}  // namespace temper::trainer
