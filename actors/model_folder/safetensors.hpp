// The safetensors file format with float32 and bfloat16 tensors: 8 bytes with the little-endian
// header length, a JSON header {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin,
// end]}, ..., "__metadata__": {"key": "text"}}, then the data; offsets count from the end of the
// header. The reader trusts nothing: every number in the file is checked before it is used.
#pragma once

#include "actors/model_folder/bfloat16.hpp"
#include "core/describe.hpp"
#include "core/files.hpp"
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

/// Bytes of the length field before the header.
inline constexpr std::size_t kSafetensorsLength = 8;
/// Same limit as the reference implementation.
inline constexpr std::uint64_t kLongestSafetensorsHeader = 100'000'000;

/// How numbers are stored in a file.
enum class StoredType { Float32, Bfloat16 };

using SafetensorsMetadata = std::map<std::string, std::string>;

struct TensorShape {
  std::string name;
  std::vector<std::int64_t> shape;
  StoredType type = StoredType::Float32;
};

/// Returns the beginning of a file: the length and the header of these tensors, whose data must
/// follow in this order. For `metadata`, see write_safetensors().
std::string write_safetensors_header(std::span<const TensorShape> tensors,
                                     const SafetensorsMetadata& metadata);

/// Writes values as the files store them. Requires: `out` has their size in this type.
void store_values(std::span<const float> values, StoredType type, std::span<char> out);

struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

/// Returns the whole file. Values are rounded to the nearest bfloat16, ties to even. Adds
/// {"format": "pt"} to `metadata`, which other readers require. Requires: values.size() is the
/// product of the shape.
std::string write_safetensors(std::span<const TensorToWrite> tensors,
                              const SafetensorsMetadata& metadata,
                              StoredType type = StoredType::Float32);
/// Passes the same bytes to `sink` in parts, and has no copy of all. Errors: those of the sink.
Status write_safetensors(std::span<const TensorToWrite> tensors,
                         const SafetensorsMetadata& metadata,
                         StoredType type,
                         const ByteSink& sink);

struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  StoredType type = StoredType::Float32;
  std::span<const std::byte> bytes;  ///< Little-endian, unaligned.
};

struct SafetensorsImage {
  std::vector<TensorView> tensors;  ///< In the order of their data.
  SafetensorsMetadata metadata;
};

/// Parses a file and checks its structure: lengths, JSON, dtypes, shapes and sizes, and that the
/// offsets cover the data without gap, overlap or rest. The views point into `file`. Error Corrupt:
/// names the tensor.
Result<SafetensorsImage> parse_safetensors(std::span<const std::byte> file);

/// Requires: values.size() is the product of the shape.
void copy_values(const TensorView& tensor, std::span<float> values);
void copy_values(const TensorView& tensor, std::span<Bfloat16> values);

/// A tensor that a reader expects, and the destination of its values.
struct TensorToRead {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<float> values;
  /// Name of an expected tensor with the same values (a tied head): one of the two may be missing,
  /// and if both exist they must be equal.
  std::string tied_to{};
  std::span<Bfloat16> rounded{};  ///< If not empty, the destination instead of `values`.
};

/// Copy: copies and checks values. Skip: ignores values.
enum class Values { Copy, Skip };

/// Fills the expected tensors from one or more images. Error Corrupt: names the tensor; values may
/// then be partly written.
class TensorReader {
 public:
  explicit TensorReader(std::span<const TensorToRead> expected, Values values = Values::Copy);
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;

  /// Errors: a tensor that is unknown, repeated, not finite, of another shape, or different from
  /// the one it is tied to.
  Status take(const SafetensorsImage& image);
  /// The same for one tensor.
  Status take(const TensorView& tensor);
  /// Error Corrupt if a tensor is missing.
  Status finish() const;

  /// False for tensors that are skipped: older files contain derived values beside the weights.
  static bool reads(std::string_view name);

 private:
  struct Expected {
    const TensorToRead* tensor = nullptr;
    bool found = false;
  };

  std::vector<TensorToRead> tensors_;
  std::map<std::string, Expected, std::less<>> by_name_;
  std::map<std::string_view, int> filled_;  ///< Number of tensors read, by the name of the tensor
                                            ///< they are tied to.
  const Values values_;
};

/// Copies exactly the expected tensors from one image. Errors: see TensorReader.
Status copy_tensors(const SafetensorsImage& image, std::span<const TensorToRead> expected);

}  // namespace actors

template <>
struct EnumNames<actors::StoredType> {
  using T = actors::StoredType;
  static constexpr std::array<std::pair<T, std::string_view>, 2> value{
      {{T::Float32, "float32"}, {T::Bfloat16, "bfloat16"}}};
};

}  // namespace temper
