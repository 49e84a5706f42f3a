// The stored tensors of a network, or of an adapter, as views of its flat array of floats, for
// writing and reading.
#pragma once

#include "actors/model_folder/adapter_layout.hpp"
#include "actors/model_folder/layout.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/safetensors.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace temper::actors {

/// Named as in layout.stored(), with `prefix`. The values are views of `flat`, the weights, which
/// must outlive them. Requires: `flat` has layout.size() floats.
std::vector<TensorToWrite> tensors_to_write(const Layout& layout,
                                            std::span<const float> flat,
                                            std::string_view prefix = "");
/// The same for reading weights into `flat`. A head that is tied to the embedding is optional.
std::vector<TensorToRead> tensors_to_read(const Layout& layout,
                                          std::span<float> flat,
                                          std::string_view prefix = "");
/// The same for an adapter: the tensors of layout.tensors().
std::vector<TensorToWrite> tensors_to_write(const AdapterLayout& layout,
                                            std::span<const float> flat,
                                            std::string_view prefix = "");
std::vector<TensorToRead> tensors_to_read(const AdapterLayout& layout,
                                          std::span<float> flat,
                                          std::string_view prefix = "");
/// As for reading the weights of a network, but without destinations for the values.
std::vector<TensorToRead> tensors_to_check(const Layout& layout);

/// Reads the weights of a folder as one float32 safetensors image. Errors: see ModelFolder::read().
Result<std::string> read_image(const ModelFolder& folder, const Layout& layout);

}  // namespace temper::actors
