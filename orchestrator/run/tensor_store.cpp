#include "orchestrator/run/tensor_store.hpp"

#include "core/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kMostTensors = 16;   ///< Of a response.
constexpr std::size_t kLongestFile = 128;  ///< Of a name.
constexpr std::size_t kLongestName = 64;
constexpr std::size_t kMostDimensions = 8;

/// Types of elements as numpy names them, with their sizes in bytes.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 12> kTypes{{{"bool", 1},
                                                                             {"int8", 1},
                                                                             {"uint8", 1},
                                                                             {"int16", 2},
                                                                             {"uint16", 2},
                                                                             {"float16", 2},
                                                                             {"int32", 4},
                                                                             {"uint32", 4},
                                                                             {"float32", 4},
                                                                             {"int64", 8},
                                                                             {"uint64", 8},
                                                                             {"float64", 8}}};

Status check_one(const actors::Tensor& t) {
  const auto wrong = [&](const std::string& what) {
    return invalid_input(fmt::format("tensor \"{}\": {}", t.name, what));
  };
  if (!is_word(t.name, kLongestName)) {
    return invalid_input(
        fmt::format("a tensor's name: expected 1 to {} of the characters A-Z, a-z, 0-9, \".\", "
                    "\"_\" and \"-\", found {}",
                    kLongestName,
                    to_json(t.name.substr(0, kLongestName))));
  }
  const auto type = std::ranges::find(kTypes, t.dtype, [](const auto& x) { return x.first; });
  if (type == kTypes.end()) {
    std::vector<std::string_view> known;
    known.reserve(kTypes.size());
    for (const auto& [name, bytes] : kTypes)
      known.push_back(name);
    return wrong(fmt::format(
        "expected type {}, found \"{}\"", fmt::join(known, ", "), t.dtype.substr(0, kLongestName)));
  }
  if (t.shape.size() > kMostDimensions)
    return wrong(fmt::format("{} dimensions, at most {}", t.shape.size(), kMostDimensions));
  // numpy refuses an empty array too if its other dimensions are beyond this.
  std::int64_t size = static_cast<std::int64_t>(type->second);
  for (const std::uint32_t n : t.shape) {
    if (__builtin_mul_overflow(size, std::int64_t{std::max(n, 1U)}, &size))
      return wrong("its shape has 2^63 bytes or more");
  }
  const bool empty = std::ranges::find(t.shape, 0U) != t.shape.end();
  const std::uint64_t bytes = empty ? 0 : static_cast<std::uint64_t>(size);
  if (bytes != t.bytes)
    return wrong(fmt::format("{} bytes, but its shape has {}", t.bytes, bytes));
  return {};
}

}  // namespace

bool is_word(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

bool is_name_of_engine(std::string_view name) {
  return is_word(name, kLongestFile) && name.front() != '.';
}

Status TensorStore::check(std::span<const actors::Tensor> tensors,
                          std::set<std::string>& named) const {
  if (tensors.size() > kMostTensors)
    return invalid_input(fmt::format("{} tensors, at most {}", tensors.size(), kMostTensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const actors::Tensor& t = tensors[i];
    TEMPER_TRY_STATUS(check_one(t));
    for (const actors::Tensor& before : tensors.first(i)) {
      if (before.name == t.name)
        return invalid_input(fmt::format("two tensors \"{}\"", before.name));
    }
    if (!accepts(t.file)) {
      return invalid_input(
          fmt::format("tensor \"{}\": expected a file name of letters, digits, dots, underscores "
                      "and hyphens that no tensor has, found {}",
                      t.name,
                      to_json(t.file.substr(0, kLongestFile))));
    }
    if (!named.insert(t.file).second)
      return invalid_input(
          fmt::format("tensor \"{}\": its file is that of another tensor", t.name));
  }
  return {};
}

}  // namespace temper::orchestrator
