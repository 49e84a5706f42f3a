// The tensors of a network over its flat array of floats, to write them or to read into them.
#pragma once

#include "actors/model_folder/layout.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/safetensors.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace temper::actors {

/// By the names of layout.stored(), each after `prefix`. Requires: flat holds layout.size() floats.
std::vector<TensorToWrite> tensors_to_write(const Layout& layout,
                                            std::span<const float> flat,
                                            std::string_view prefix = "");
/// The same to read. A head that is tied to the embedding may be there or not.
std::vector<TensorToRead> tensors_to_read(const Layout& layout,
                                          std::span<float> flat,
                                          std::string_view prefix = "");
/// The same without a place for their values.
std::vector<TensorToRead> tensors_to_check(const Layout& layout);

/// The weights of a folder as one safetensors image in float32. Errors: as ModelFolder::read().
Result<std::string> read_image(const ModelFolder& folder, const Layout& layout);

}  // namespace temper::actors
