#include "actors/policy/safetensors.hpp"

#include "core/json_document.hpp"

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

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // The limit of the reference reader.

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Bytes of a float32 tensor, or nothing if the product overflows.
std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t n = sizeof(float);
  for (const std::int64_t extent : shape) {
    const auto e = static_cast<std::uint64_t>(extent);
    if (e != 0 && n > std::numeric_limits<std::uint64_t>::max() / e)
      return std::nullopt;
    n *= e;
  }
  return n;
}

Result<std::string_view> header_of(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes)
    return corrupt(
        fmt::format("safetensors: {} bytes, too short for a header length", file.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kLongestHeader || length > file.size() - kLengthBytes)
    return corrupt(fmt::format(
        "safetensors: header of {} bytes in a file of {} (truncated?)", length, file.size()));
  return std::string_view(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
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
    return bad("needs dtype, shape and data_offsets");
  if (!json["dtype"].is_string() || json["dtype"] != "F32")
    return bad(fmt::format("dtype {}, expected \"F32\"", json["dtype"].dump()));
  Entry entry;
  entry.view.name = name;
  if (!json["shape"].is_array())
    return bad("shape is not a list");
  for (const auto& extent : json["shape"]) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      return bad(fmt::format("extent {} in its shape", extent.dump()));
    entry.view.shape.push_back(extent.get<std::int64_t>());
  }
  const auto& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return bad("data_offsets is not [begin, end]");
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  const auto bytes = bytes_of(entry.view.shape);
  if (entry.end < entry.begin || !bytes || *bytes != entry.end - entry.begin)
    return bad(fmt::format("data_offsets [{}, {}] do not fit shape {} of F32",
                           entry.begin,
                           entry.end,
                           shape_text(entry.view.shape)));
  return entry;
}

Result<SafetensorsMetadata> parse_metadata(const nlohmann::json& json) {
  SafetensorsMetadata metadata;
  if (!json.is_object())
    return corrupt("safetensors: __metadata__ is not a map");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      return corrupt(fmt::format("safetensors: __metadata__ '{}' is not text", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Gives each entry its bytes. The entries, in order, must tile the data.
Status place(std::vector<Entry>& entries, std::span<const std::byte> data) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (Entry& entry : entries) {
    if (entry.begin != at)
      return corrupt(
          fmt::format("tensor '{}': data begins at {}, {} the one before, which ends "
                      "at {}",
                      entry.view.name,
                      entry.begin,
                      entry.begin < at ? "overlapping" : "leaving a gap after",
                      at));
    if (entry.end > data.size())
      return corrupt(fmt::format("tensor '{}': data ends at {}, but the file holds {} (truncated?)",
                                 entry.view.name,
                                 entry.end,
                                 data.size()));
    entry.view.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    at = entry.end;
  }
  if (at != data.size())
    return corrupt(fmt::format("safetensors: {} bytes after the last tensor", data.size() - at));
  return {};
}

/// Refuses nesting (a deep header could exhaust the stack) and doubled names while parsing.
nlohmann::json parse_json(std::string_view header, std::string& doubled) {
  std::vector<std::string> names;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key)
      names.push_back(value.get<std::string>());
    return depth <= 3;
  };
  auto json = nlohmann::json::parse(header, watch, /*allow_exceptions=*/false);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    doubled = *twice;
  return json;
}

}  // namespace

std::string write_safetensors(std::span<const TensorToWrite> tensors,
                              const SafetensorsMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorToWrite& tensor : tensors) {
    TEMPER_CHECK(bytes_of(tensor.shape) == tensor.values.size_bytes(), "shape and values differ");
    const std::uint64_t end = at + tensor.values.size_bytes();
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // Keeps the data aligned, as the format asks.
  const std::uint64_t length = text.size();
  std::string file(kLengthBytes + text.size() + at, '\0');
  std::memcpy(file.data(), &length, kLengthBytes);
  std::memcpy(file.data() + kLengthBytes, text.data(), text.size());
  char* out = file.data() + kLengthBytes + text.size();
  for (const TensorToWrite& tensor : tensors) {
    if (!tensor.values.empty())
      std::memcpy(out, tensor.values.data(), tensor.values.size_bytes());
    out += tensor.values.size_bytes();
  }
  return file;
}

Result<SafetensorsImage> parse_safetensors(std::span<const std::byte> file) {
  TEMPER_TRY(const std::string_view header, header_of(file));
  std::string doubled;
  const nlohmann::json json = parse_json(header, doubled);
  if (json.is_discarded() || !json.is_object())
    return corrupt("safetensors: the header is not a JSON object");
  if (!doubled.empty())
    return corrupt(fmt::format("tensor '{}': named twice in the header", doubled));
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
  TEMPER_TRY_STATUS(place(entries, file.subspan(kLengthBytes + header.size())));
  for (Entry& entry : entries)
    image.tensors.push_back(std::move(entry.view));
  return image;
}

Status copy_tensors(const SafetensorsImage& image, std::span<const TensorToRead> expected) {
  std::map<std::string_view, const TensorView*> by_name;
  for (const TensorView& tensor : image.tensors)
    by_name[tensor.name] = &tensor;
  for (const TensorToRead& want : expected) {
    const auto found = by_name.find(want.name);
    if (found == by_name.end())
      return corrupt(fmt::format("tensor '{}': missing", want.name));
    const TensorView& have = *found->second;
    if (have.shape != want.shape)
      return corrupt(fmt::format("tensor '{}': shape {}, expected {}",
                                 want.name,
                                 shape_text(have.shape),
                                 shape_text(want.shape)));
    TEMPER_CHECK(have.bytes.size() == want.values.size_bytes(), "shape and values differ");
    if (!want.values.empty())
      std::memcpy(want.values.data(), have.bytes.data(), have.bytes.size());
    const auto bad = std::find_if_not(
        want.values.begin(), want.values.end(), [](float x) { return std::isfinite(x); });
    if (bad != want.values.end())
      return corrupt(fmt::format(
          "tensor '{}': value {} at element {}", want.name, *bad, bad - want.values.begin()));
    by_name.erase(found);
  }
  if (!by_name.empty())
    return corrupt(fmt::format("tensor '{}': not one of this model's", by_name.begin()->first));
  return {};
}

}  // namespace temper::actors
