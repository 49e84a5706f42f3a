// The safetensors file format, float32 tensors only: 8 bytes of little-endian header length, a JSON
// header {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, ...,
// "__metadata__": {"key": "text"}}, then the data, offsets counted from the end of the header.
// Reading trusts nothing: nothing is allocated from a number in the file before it is checked.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

using SafetensorsMetadata = std::map<std::string, std::string>;

struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

/// The whole file as one string. Requires: values.size() is the product of the shape.
std::string write_safetensors(std::span<const TensorToWrite> tensors,
                              const SafetensorsMetadata& metadata);

struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  ///< Little-endian float32, of any alignment.
};

struct SafetensorsImage {
  std::vector<TensorView> tensors;  ///< In order of their data.
  SafetensorsMetadata metadata;
};

/// Checks the structure: lengths, JSON, dtype, shapes against sizes, offsets that tile the data
/// without gap, overlap or rest. The views point into `file`. Errors (Corrupt) name the tensor.
Result<SafetensorsImage> parse_safetensors(std::span<const std::byte> file);

/// A tensor that a reader expects, and where its values go.
struct TensorToRead {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<float> values;
};

/// Copies exactly the expected tensors out of the image. Errors (Corrupt) name the tensor: missing,
/// unknown, of another shape, or with a value that is not finite; `values` may then be half
/// written.
Status copy_tensors(const SafetensorsImage& image, std::span<const TensorToRead> expected);

}  // namespace temper::actors
