// The safetensors file format, float32 and bfloat16 tensors: 8 bytes of little-endian header
// length, a JSON header {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]},
// ...,
// "__metadata__": {"key": "text"}}, then the data, offsets counted from the end of the header.
// Reading trusts nothing: nothing is allocated from a number in the file before it is checked.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper {
namespace actors {

/// How the numbers of a file are stored. We compute in float32 either way.
enum class StoredType { Float32, Bfloat16 };
/// The value that is stored as bfloat16: the nearest one, ties to even.
float rounded_to_bfloat16(float value);

using SafetensorsMetadata = std::map<std::string, std::string>;

struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

/// The whole file as one string; bfloat16 is rounded to nearest, ties to even. Beside `metadata` it
/// says {"format": "pt"}, which other readers ask for. Requires: values.size() is the product of
/// the shape.
std::string write_safetensors(std::span<const TensorToWrite> tensors,
                              const SafetensorsMetadata& metadata,
                              StoredType type = StoredType::Float32);

struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  StoredType type = StoredType::Float32;
  std::span<const std::byte> bytes;  ///< Little-endian, of any alignment.
};

struct SafetensorsImage {
  std::vector<TensorView> tensors;  ///< In order of their data.
  SafetensorsMetadata metadata;
};

/// Checks the structure: lengths, JSON, dtype, shapes against sizes, offsets that tile the data
/// without gap, overlap or rest. The views point into `file`. Errors (Corrupt) name the tensor.
Result<SafetensorsImage> parse_safetensors(std::span<const std::byte> file);

/// Requires: values.size() is the product of the shape.
void copy_values(const TensorView& tensor, std::span<float> values);

/// A tensor that a reader expects, and where its values go.
struct TensorToRead {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<float> values;
  /// Name of an expected tensor with the same values (a tied head): one of the two may be missing,
  /// and if both are there they must be equal.
  std::string tied_to{};
};

/// What a reader does with values: copies and checks them, or leaves them alone.
enum class Values { Copy, Skip };

/// Fills expected tensors from one image after the other. Errors (Corrupt) name the tensor; the
/// values may then be half written.
class TensorReader {
 public:
  explicit TensorReader(std::span<const TensorToRead> expected, Values values = Values::Copy);
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;

  /// Errors: a tensor that is unknown, was there before, is of another shape, has a value that is
  /// not finite, or differs from the one that it is tied to.
  Status take(const SafetensorsImage& image);
  /// Error: a tensor is missing.
  Status finish() const;

  /// False: a tensor of this name is passed over. Older files hold a function of the shape beside
  /// the weights.
  static bool reads(std::string_view name);

 private:
  struct Expected {
    const TensorToRead* tensor = nullptr;
    bool found = false;
  };
  Status take(const TensorView& tensor);

  std::vector<TensorToRead> tensors_;
  std::map<std::string, Expected, std::less<>> by_name_;
  std::map<std::string_view, int> filled_;  ///< How many have come, by name of the one tied to.
  const Values values_;
};

/// Copies exactly the expected tensors out of one image. Errors: as TensorReader's.
Status copy_tensors(const SafetensorsImage& image, std::span<const TensorToRead> expected);

}  // namespace actors

template <>
struct EnumNames<actors::StoredType> {
  using T = actors::StoredType;
  static constexpr std::array<std::pair<T, std::string_view>, 2> value{
      {{T::Float32, "float32"}, {T::Bfloat16, "bfloat16"}}};
};

}  // namespace temper
