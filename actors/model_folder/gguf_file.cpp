#include "actors/model_folder/gguf_file.hpp"

#include "core/lfs_pointer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace temper::actors {
namespace {

constexpr std::size_t kLongestName = 1024;
constexpr std::uint32_t kMostDimensions = 4;

/// Value types of metadata, with their numbers in the format.
enum class ValueType : std::uint32_t {
  Uint8 = 0,
  Int8 = 1,
  Uint16 = 2,
  Int16 = 3,
  Uint32 = 4,
  Int32 = 5,
  Float32 = 6,
  Bool = 7,
  Text = 8,
  Array = 9,
  Uint64 = 10,
  Int64 = 11,
  Float64 = 12,
};

/// Reads numbers and texts in order, and never beyond the end.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  Result<T> number() {
    if (left() < sizeof(T))
      return ends(sizeof(T));
    T value{};
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  Result<std::string> text() {
    TEMPER_TRY(const auto length, number<std::uint64_t>());
    if (length > left())
      return ends(length);
    std::string out(reinterpret_cast<const char*>(bytes_.data()) + at_,
                    static_cast<std::size_t>(length));
    at_ += static_cast<std::size_t>(length);
    return out;
  }
  /// A number of items of at least `least` bytes each, which must fit into the rest of the file.
  Result<std::uint64_t> count(std::string_view what, std::uint64_t least) {
    TEMPER_TRY(const auto n, number<std::uint64_t>());
    if (n > left() / least) {
      return corrupt(fmt::format(
          "{} {} do not fit into the {} bytes that follow byte {}", n, what, left(), at_));
    }
    return n;
  }
  std::size_t at() const { return at_; }

 private:
  std::uint64_t left() const { return bytes_.size() - at_; }
  Error ends(std::uint64_t wanted) const {
    return corrupt(fmt::format(
        "expected {} more bytes at byte {}, found {} (truncated?)", wanted, at_, left()));
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

template <class T>
Result<T> in_place(Result<T> result, std::string_view outer) {
  if (result)
    return result;
  return std::move(result).error().within(outer);
}

template <class T>
Result<std::int64_t> integer(ByteCursor& in) {
  TEMPER_TRY(const T value, in.number<T>());
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return corrupt(fmt::format("expected an integer below 2^63, found {}", value));
  }
  return static_cast<std::int64_t>(value);
}

Result<std::int64_t> read_integer(ByteCursor& in, ValueType type) {
  switch (type) {
    case ValueType::Uint8:
    case ValueType::Bool:
      return integer<std::uint8_t>(in);
    case ValueType::Int8:
      return integer<std::int8_t>(in);
    case ValueType::Uint16:
      return integer<std::uint16_t>(in);
    case ValueType::Int16:
      return integer<std::int16_t>(in);
    case ValueType::Uint32:
      return integer<std::uint32_t>(in);
    case ValueType::Int32:
      return integer<std::int32_t>(in);
    case ValueType::Uint64:
      return integer<std::uint64_t>(in);
    default:
      return integer<std::int64_t>(in);
  }
}

Result<double> read_real(ByteCursor& in, ValueType type) {
  if (type == ValueType::Float64)
    return in.number<double>();
  return in.number<float>().transform([](float value) { return static_cast<double>(value); });
}

bool is_real(ValueType type) {
  return type == ValueType::Float32 || type == ValueType::Float64;
}

Result<ValueType> read_type(ByteCursor& in) {
  TEMPER_TRY(const auto type, in.number<std::uint32_t>());
  if (type > static_cast<std::uint32_t>(ValueType::Float64))
    return corrupt(fmt::format("expected a value type from 0 to 12, found {}", type));
  return static_cast<ValueType>(type);
}

std::uint64_t least_bytes(ValueType type) {
  constexpr std::array<std::uint64_t, 13> kBytes{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

template <class T, class F>
Result<GgufValue> read_list(std::uint64_t count, F&& read) {
  std::vector<T> list;
  list.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    TEMPER_TRY(T value, read());
    list.push_back(std::move(value));
  }
  return GgufValue(std::move(list));
}

Result<GgufValue> read_array(ByteCursor& in) {
  TEMPER_TRY(const ValueType type, read_type(in));
  if (type == ValueType::Array)
    return Error{ErrorCode::Unsupported, "expected a list of values, found a list of lists"};
  TEMPER_TRY(const std::uint64_t count, in.count("values", least_bytes(type)));
  if (type == ValueType::Text)
    return read_list<std::string>(count, [&] { return in.text(); });
  if (is_real(type))
    return read_list<double>(count, [&] { return read_real(in, type); });
  return read_list<std::int64_t>(count, [&] { return read_integer(in, type); });
}

Result<GgufValue> read_value(ByteCursor& in) {
  TEMPER_TRY(const ValueType type, read_type(in));
  const auto wrap = [](auto value) { return GgufValue(std::move(value)); };
  if (type == ValueType::Array)
    return read_array(in);
  if (type == ValueType::Text)
    return in.text().transform(wrap);
  if (is_real(type))
    return read_real(in, type).transform(wrap);
  if (type == ValueType::Bool)
    return read_integer(in, type).transform([](auto n) { return GgufValue(n != 0); });
  return read_integer(in, type).transform(wrap);
}

Result<std::string> read_name(ByteCursor& in) {
  TEMPER_TRY(std::string name, in.text());
  const bool printable = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
  if (name.empty() || name.size() > kLongestName || !printable) {
    return corrupt(fmt::format("expected a name of at most {} printable characters before byte {}",
                               kLongestName,
                               in.at()));
  }
  return name;
}

Result<GgufType> read_tensor_type(ByteCursor& in) {
  constexpr std::array kTypes{GgufType::Float32,
                              GgufType::Float16,
                              GgufType::Bfloat16,
                              GgufType::Q4_0,
                              GgufType::Q4_1,
                              GgufType::Q8_0};
  TEMPER_TRY(const auto number, in.number<std::uint32_t>());
  std::vector<std::string_view> known;
  for (const GgufType type : kTypes) {
    if (static_cast<std::uint32_t>(type) == number)
      return type;
    known.push_back(name_of(type));
  }
  return Error{ErrorCode::Unsupported,
               fmt::format("expected one of the types {}, found type {}; use a file of one of "
                           "these types",
                           fmt::join(known, ", "),
                           number)};
}

/// Name excepted; `begin` is relative to the data.
Result<GgufTensor> read_tensor(ByteCursor& in) {
  GgufTensor tensor;
  TEMPER_TRY(const auto dimensions, in.number<std::uint32_t>());
  if (dimensions == 0 || dimensions > kMostDimensions) {
    return corrupt(
        fmt::format("expected 1 to {} dimensions, found {}", kMostDimensions, dimensions));
  }
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    TEMPER_TRY(const auto size, in.number<std::uint64_t>());
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
    if (size == 0 || size > kMost || elements > (std::uint64_t{1} << 48) / size)
      return corrupt(fmt::format("dimension {}: size {} is out of range", i, size));
    elements *= size;
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
  }
  TEMPER_TRY(tensor.type, read_tensor_type(in));
  const std::int64_t block = block_of(tensor.type);
  if (tensor.shape.back() % block != 0) {
    return corrupt(fmt::format("expected a multiple of {} as innermost size of {}, found {}",
                               block,
                               name_of(tensor.type),
                               tensor.shape.back()));
  }
  tensor.bytes = elements / static_cast<std::uint64_t>(block) *
                 static_cast<std::uint64_t>(block_bytes_of(tensor.type));
  TEMPER_TRY(tensor.begin, in.number<std::uint64_t>());
  return tensor;
}

/// Moves the tensors to their places in the file. They must not overlap or exceed it.
Status place(std::vector<GgufTensor>& tensors, std::uint64_t data, std::uint64_t size) {
  std::ranges::sort(tensors, {}, &GgufTensor::begin);
  std::uint64_t end = data;
  for (GgufTensor& tensor : tensors) {
    if (data > size || tensor.begin > size - data || tensor.bytes > size - data - tensor.begin) {
      return corrupt(fmt::format(
          "tensor '{}': {} bytes at offset {} of the data exceed the file of {} bytes (truncated?)",
          tensor.name,
          tensor.bytes,
          tensor.begin,
          size));
    }
    tensor.begin += data;
    if (tensor.begin < end)
      return corrupt(fmt::format("tensor '{}': overlaps another tensor", tensor.name));
    end = tensor.begin + tensor.bytes;
  }
  return {};
}

struct GgufCounts {
  std::uint64_t tensors = 0, keys = 0;
};

Result<GgufCounts> read_counts(ByteCursor& in) {
  constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
  TEMPER_TRY(const auto magic, in.number<std::uint32_t>());
  if (magic != kMagic)
    return corrupt("not a GGUF file: it does not begin with `GGUF`");
  TEMPER_TRY(const auto version, in.number<std::uint32_t>());
  if (version != 2 && version != 3) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("expected version 2 or 3 of GGUF, found {}", version)};
  }
  constexpr std::uint64_t kLeastTensor = 8 + 4 + 8 + 4 + 8, kLeastKey = 8 + 4 + 1;
  GgufCounts counts;
  TEMPER_TRY(counts.tensors, in.count("tensors", kLeastTensor));
  TEMPER_TRY(counts.keys, in.count("keys", kLeastKey));
  return counts;
}

}  // namespace

std::int64_t GgufTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape)
    product *= size;
  return product;
}

Error GgufFile::wrong_type(std::string_view key) {
  return corrupt(fmt::format("key '{}': the value has another type than expected", key));
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> head, std::uint64_t size) {
  TEMPER_TRY_STATUS(check_lfs_pointer({reinterpret_cast<const char*>(head.data()), head.size()}));
  ByteCursor in(head);
  TEMPER_TRY(const GgufCounts counts, read_counts(in));
  GgufFile file;
  for (std::uint64_t i = 0; i < counts.keys; ++i) {
    TEMPER_TRY(std::string key, in_place(read_name(in), fmt::format("key {}", i)));
    TEMPER_TRY(GgufValue value, in_place(read_value(in), fmt::format("key '{}'", key)));
    if (!file.keys_.emplace(key, std::move(value)).second)
      return corrupt(fmt::format("key '{}': found twice", key));
  }
  std::vector<GgufTensor> tensors;
  for (std::uint64_t i = 0; i < counts.tensors; ++i) {
    TEMPER_TRY(std::string name, in_place(read_name(in), fmt::format("tensor {}", i)));
    TEMPER_TRY(GgufTensor tensor, in_place(read_tensor(in), fmt::format("tensor '{}'", name)));
    tensor.name = std::move(name);
    tensors.push_back(std::move(tensor));
  }
  TEMPER_TRY(const auto* const given, file.find<std::int64_t>("general.alignment"));
  const std::int64_t alignment = given != nullptr ? *given : 32;
  if (alignment < 1 || alignment > 1 << 20) {
    return corrupt(
        fmt::format("key 'general.alignment': expected 1 to 1048576, found {}", alignment));
  }
  const auto align = static_cast<std::uint64_t>(alignment);
  TEMPER_TRY_STATUS(place(tensors, (in.at() + align - 1) / align * align, size));
  for (GgufTensor& tensor : tensors) {
    const std::string name = tensor.name;
    if (!file.tensors_.emplace(name, std::move(tensor)).second)
      return corrupt(fmt::format("tensor '{}': found twice", name));
  }
  return file;
}

}  // namespace temper::actors
