// Reads the GGUF file format, versions 2 and 3: metadata and the list of tensors. gguf.hpp has an
// overview of the format. The reader trusts nothing: every count, length and offset is checked
// against the file before it is used.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace temper::actors {

/// The stored types that can be converted to float32, with their numbers in the format.
enum class GgufType : std::uint32_t {
  Float32 = 0,
  Float16 = 1,
  // NOLINTBEGIN(readability-identifier-naming): the names of the format
  Q4_0 = 2,
  Q4_1 = 3,
  Q8_0 = 8,
  // NOLINTEND(readability-identifier-naming)
  Bfloat16 = 30,
};
std::string_view name_of(GgufType type);
/// Number of values that are stored together.
std::int64_t block_of(GgufType type);
/// Size of a block in bytes.
std::int64_t block_bytes_of(GgufType type);

/// Converts whole blocks. Requires: `bytes` holds exactly values.size() values.
void dequantize(GgufType type, std::span<const std::byte> bytes, std::span<float> values);

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< Outermost size first, as in safetensors.
  GgufType type = GgufType::Float32;
  std::uint64_t begin = 0;  ///< Offset from the beginning of the file.
  std::uint64_t bytes = 0;

  std::int64_t elements() const;
};

/// A metadata value. Integers of all widths are stored as int64.
using GgufValue = std::variant<std::int64_t,
                               double,
                               bool,
                               std::string,
                               std::vector<std::int64_t>,
                               std::vector<double>,
                               std::vector<std::string>>;

class GgufFile {
 public:
  /// Largest metadata that is read, in bytes; vocabularies of 250,000 tokens need about 10 MB.
  static constexpr std::uint64_t kLargestMetadata = std::uint64_t{1} << 27;

  /// Parses the beginning of a file of `size` bytes. `head` is the whole file, or at least its
  /// first kLargestMetadata bytes. Error Corrupt or Unsupported: names the key or tensor.
  static Result<GgufFile> parse(std::span<const std::byte> head, std::uint64_t size);

  const std::map<std::string, GgufValue, std::less<>>& keys() const { return keys_; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }

  /// The value of a key; null if the key is missing. Error Corrupt: it has another type.
  template <class T>
  Result<const T*> find(std::string_view key) const {
    const auto at = keys_.find(key);
    if (at == keys_.end())
      return static_cast<const T*>(nullptr);
    if (const T* const value = std::get_if<T>(&at->second))
      return value;
    return wrong_type(key);
  }

 private:
  static Error wrong_type(std::string_view key);

  std::map<std::string, GgufValue, std::less<>> keys_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace temper::actors
