#include "actors/model_folder/safetensors.hpp"

#include "core/json_document.hpp"
#include "core/lfs_pointer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace temper::actors {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::size_t kStoredAtOnce = std::size_t{1} << 18;  ///< Values.
constexpr std::size_t kHeaderOfTensor = 256;                 ///< Bytes, about.

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::uint64_t size_of(StoredType type) {
  return type == StoredType::Float32 ? sizeof(float) : sizeof(std::uint16_t);
}

/// The dtype as written in a header.
std::string_view dtype_of(StoredType type) {
  return type == StoredType::Float32 ? "F32" : "BF16";
}

std::optional<StoredType> parse_dtype(const nlohmann::json& json) {
  for (const StoredType type : {StoredType::Float32, StoredType::Bfloat16}) {
    if (json.is_string() && json.get<std::string>() == dtype_of(type))
      return type;
  }
  return std::nullopt;
}

/// Size of a tensor in bytes; empty if the product overflows.
std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& shape, StoredType type) {
  std::uint64_t n = size_of(type);
  for (const std::int64_t extent : shape) {
    const auto e = static_cast<std::uint64_t>(extent);
    if (e != 0 && n > std::numeric_limits<std::uint64_t>::max() / e)
      return std::nullopt;
    n *= e;
  }
  return n;
}

Result<std::string_view> header_of(std::span<const std::byte> file) {
  if (file.size() < kSafetensorsLength)
    return corrupt(
        fmt::format("safetensors: {} bytes, too short for a header length", file.size()));
  TEMPER_TRY_STATUS(check_lfs_pointer({reinterpret_cast<const char*>(file.data()), file.size()}));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kSafetensorsLength);
  if (length <= file.size() - kSafetensorsLength && length > kLongestSafetensorsHeader)
    return corrupt(fmt::format(
        "safetensors: header of {} bytes, expected at most {}", length, kLongestSafetensorsHeader));
  if (length > file.size() - kSafetensorsLength)
    return corrupt(fmt::format(
        "safetensors: header of {} bytes in a file of {} (truncated?)", length, file.size()));
  return std::string_view(reinterpret_cast<const char*>(file.data()) + kSafetensorsLength, length);
}

struct Entry {
  TensorView view;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Result<Entry> parse_entry(const std::string& name, const nlohmann::json& json) {
  const auto bad = [&](std::string_view what) {
    return corrupt(fmt::format("tensor '{}': {}", name, what));
  };
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return bad("expected dtype, shape and data_offsets");
  const auto type = parse_dtype(json["dtype"]);
  if (!type)
    return bad(fmt::format("expected dtype \"F32\" or \"BF16\", found {}", json["dtype"].dump()));
  Entry entry;
  entry.view.type = *type;
  entry.view.name = name;
  if (!json["shape"].is_array())
    return bad("expected a list as shape");
  for (const auto& extent : json["shape"]) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      return bad(fmt::format("expected integers >= 0 in the shape, found {}", extent.dump()));
    entry.view.shape.push_back(extent.get<std::int64_t>());
  }
  const auto& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return bad("expected data_offsets [begin, end]");
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  const auto bytes = bytes_of(entry.view.shape, *type);
  if (entry.end < entry.begin || !bytes || *bytes != entry.end - entry.begin) {
    return bad(fmt::format("data_offsets [{}, {}] do not match shape {} of {}",
                           entry.begin,
                           entry.end,
                           shape_text(entry.view.shape),
                           dtype_of(*type)));
  }
  return entry;
}

Result<SafetensorsMetadata> parse_metadata(const nlohmann::json& json) {
  SafetensorsMetadata metadata;
  if (!json.is_object())
    return corrupt("safetensors: expected a map as __metadata__");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      return corrupt(fmt::format("safetensors: expected text as __metadata__ '{}'", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Assigns each entry its bytes. The entries, in order, must cover the data exactly.
Status place(std::vector<Entry>& entries, std::span<const std::byte> data) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (Entry& entry : entries) {
    if (entry.begin != at) {
      return corrupt(
          fmt::format("tensor '{}': data begins at {}, {} the one before, which ends "
                      "at {}",
                      entry.view.name,
                      entry.begin,
                      entry.begin < at ? "overlapping" : "leaving a gap after",
                      at));
    }
    if (entry.end > data.size()) {
      return corrupt(fmt::format("tensor '{}': data ends at {}, but the file holds {} (truncated?)",
                                 entry.view.name,
                                 entry.end,
                                 data.size()));
    }
    entry.view.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    at = entry.end;
  }
  if (at != data.size())
    return corrupt(fmt::format("safetensors: {} bytes after the last tensor", data.size() - at));
  return {};
}

/// Rejects deep nesting (which could exhaust the stack) and duplicate names while parsing.
nlohmann::json parse_header(std::string_view header, std::string& doubled) {
  std::vector<std::string> names;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key)
      names.push_back(value.get<std::string>());
    return depth <= 3;
  };
  if (header.find('\0') != std::string_view::npos)  // for the parser, the end of the text
    return nlohmann::json::value_t::discarded;
  auto json = nlohmann::json::parse(header, watch, /*allow_exceptions=*/false);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    doubled = *twice;
  return json;
}

}  // namespace

std::string write_safetensors_header(std::span<const TensorShape> tensors,
                                     const SafetensorsMetadata& metadata) {
  SafetensorsMetadata said = metadata;
  said.emplace("format", "pt");
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = said;
  std::uint64_t at = 0;
  for (const TensorShape& tensor : tensors) {
    const auto bytes = bytes_of(tensor.shape, tensor.type);
    TEMPER_CHECK(bytes.has_value(), "a tensor of more than 2^64 bytes");
    header[tensor.name] = {{"dtype", dtype_of(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + *bytes}}};
    at += *bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // Keeps the data aligned, as the format requires.
  const std::uint64_t length = text.size();
  std::string out(kSafetensorsLength, '\0');
  std::memcpy(out.data(), &length, kSafetensorsLength);
  return out + text;
}

void store_values(std::span<const float> values, StoredType type, std::span<char> out) {
  TEMPER_CHECK(out.size() == values.size() * size_of(type),
               "the number of values does not match the bytes");
  if (type == StoredType::Float32 && !values.empty())
    std::memcpy(out.data(), values.data(), values.size_bytes());
  for (std::size_t i = 0; type == StoredType::Bfloat16 && i < values.size(); ++i) {
    const Bfloat16 half = to_bfloat16(values[i]);
    std::memcpy(out.data() + i * sizeof(half), &half, sizeof(half));
  }
}

std::string write_safetensors(std::span<const TensorToWrite> tensors,
                              const SafetensorsMetadata& metadata,
                              StoredType type) {
  std::uint64_t bytes = 0;
  for (const TensorToWrite& tensor : tensors)
    bytes += tensor.values.size() * size_of(type) + kHeaderOfTensor;
  std::string file;
  file.reserve(bytes);
  const Status kept = write_safetensors(tensors, metadata, type, [&](std::string_view part) {
    file += part;
    return Status();
  });
  TEMPER_CHECK(kept, "a string takes all bytes");
  return file;
}

Status write_safetensors(std::span<const TensorToWrite> tensors,
                         const SafetensorsMetadata& metadata,
                         StoredType type,
                         const ByteSink& sink) {
  std::vector<TensorShape> shapes;
  shapes.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) {
    TEMPER_CHECK(bytes_of(tensor.shape, type) == tensor.values.size() * size_of(type),
                 "the number of values does not match the shape");
    shapes.push_back({tensor.name, tensor.shape, type});
  }
  TEMPER_TRY_STATUS(sink(write_safetensors_header(shapes, metadata)));
  std::string stored;
  for (const TensorToWrite& tensor : tensors) {
    for (std::span<const float> rest = tensor.values; !rest.empty();) {
      const std::size_t n = std::min(rest.size(), kStoredAtOnce);
      stored.resize(n * size_of(type));
      store_values(rest.first(n), type, stored);
      TEMPER_TRY_STATUS(sink(stored));
      rest = rest.subspan(n);
    }
  }
  return {};
}

Result<SafetensorsImage> parse_safetensors(std::span<const std::byte> file) {
  TEMPER_TRY(const std::string_view header, header_of(file));
  std::string doubled;
  const nlohmann::json json = parse_header(header, doubled);
  if (json.is_discarded() || !json.is_object())
    return corrupt("safetensors: the header is not a JSON object");
  if (!doubled.empty())
    return corrupt(fmt::format("tensor '{}': duplicate name in the header", doubled));
  SafetensorsImage image;
  std::vector<Entry> entries;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      TEMPER_TRY(image.metadata, parse_metadata(value));
    } else {
      TEMPER_TRY(Entry entry, parse_entry(name, value));
      entries.push_back(std::move(entry));
    }
  }
  TEMPER_TRY_STATUS(place(entries, file.subspan(kSafetensorsLength + header.size())));
  for (Entry& entry : entries)
    image.tensors.push_back(std::move(entry.view));
  return image;
}

namespace {

std::string_view key_of(const TensorToRead& tensor) {
  return tensor.tied_to.empty() ? tensor.name : tensor.tied_to;
}

}  // namespace

void copy_values(const TensorView& tensor, std::span<float> values) {
  TEMPER_CHECK(tensor.bytes.size() == values.size() * size_of(tensor.type),
               "the number of values does not match the shape");
  if (tensor.type == StoredType::Float32 && !values.empty())
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  for (std::size_t i = 0; tensor.type == StoredType::Bfloat16 && i < values.size(); ++i) {
    Bfloat16 half{};
    std::memcpy(&half, tensor.bytes.data() + i * sizeof(half), sizeof(half));
    values[i] = to_float(half);
  }
}

void copy_values(const TensorView& tensor, std::span<Bfloat16> values) {
  TEMPER_CHECK(tensor.bytes.size() == values.size() * size_of(tensor.type),
               "the number of values does not match the shape");
  if (tensor.type == StoredType::Bfloat16 && !values.empty())
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  for (std::size_t i = 0; tensor.type == StoredType::Float32 && i < values.size(); ++i) {
    float value = 0;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(value), sizeof(value));
    values[i] = to_bfloat16(value);
  }
}

namespace {

bool is_finite(float value) {
  return std::isfinite(value);
}
bool is_finite(Bfloat16 value) {
  return std::isfinite(to_float(value));
}
std::string text_of(float value) {
  return fmt::format("{}", value);
}
std::string text_of(Bfloat16 value) {
  return fmt::format("{}", to_float(value));
}

/// Copies a tensor that is expected, or compares it with the one that it is tied to.
template <class Value>
Status take_values(const TensorView& have, std::span<Value> values, bool first) {
  if (!first) {
    std::vector<Value> again(values.size());
    copy_values(have, std::span(again));
    if (!std::ranges::equal(again, values))
      return corrupt(fmt::format("tensor '{}': differs from the tensor that config.json ties it to",
                                 have.name));
    return {};
  }
  copy_values(have, values);
  const auto bad = std::ranges::find_if_not(values, [](Value x) { return is_finite(x); });
  if (bad != values.end()) {
    return corrupt(fmt::format("tensor '{}': expected finite values, found {} at element {}",
                               have.name,
                               text_of(*bad),
                               bad - values.begin()));
  }
  return {};
}

}  // namespace

TensorReader::TensorReader(std::span<const TensorToRead> expected, Values values)
    : tensors_(expected.begin(), expected.end()), values_(values) {
  for (const TensorToRead& tensor : tensors_)
    by_name_[tensor.name].tensor = &tensor;
}

bool TensorReader::reads(std::string_view name) {
  return !name.ends_with(".rotary_emb.inv_freq");
}

Status TensorReader::take(const SafetensorsImage& image) {
  for (const TensorView& tensor : image.tensors) {
    if (reads(tensor.name))
      TEMPER_TRY_STATUS(take(tensor));
  }
  return {};
}

Status TensorReader::take(const TensorView& have) {
  const auto found = by_name_.find(have.name);
  if (found == by_name_.end())
    return corrupt(fmt::format("tensor '{}': unknown for this model", have.name));
  const TensorToRead& want = *found->second.tensor;
  if (found->second.found)
    return corrupt(fmt::format("tensor '{}': found twice", have.name));
  if (have.shape != want.shape) {
    return corrupt(fmt::format("tensor '{}': found shape {}, expected {}",
                               want.name,
                               shape_text(have.shape),
                               shape_text(want.shape)));
  }
  found->second.found = true;
  const bool first = filled_[key_of(want)]++ == 0;
  if (values_ == Values::Skip)
    return {};
  return want.rounded.empty() ? take_values(have, want.values, first)
                              : take_values(have, want.rounded, first);
}

Status TensorReader::finish() const {
  for (const TensorToRead& want : tensors_) {
    if (!filled_.contains(key_of(want)))
      return corrupt(fmt::format("tensor '{}': missing", want.name));
  }
  return {};
}

Status copy_tensors(const SafetensorsImage& image, std::span<const TensorToRead> expected) {
  TensorReader reader(expected);
  TEMPER_TRY_STATUS(reader.take(image));
  return reader.finish();
}

}  // namespace temper::actors
