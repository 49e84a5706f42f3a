#include "orchestrator/run/tensor_store.hpp"

#include "actors/shared_memory/shared_buffer.hpp"
#include "core/files.hpp"
#include "core/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <system_error>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "temper-tensors-";
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

bool is_word(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

/// Names with a dot in front are the store's own.
bool is_file_of_engine(std::string_view name) {
  return is_word(name, kLongestFile) && name.front() != '.';
}

bool is_regular(const fs::path& file, std::uint64_t bytes) {
  struct stat found {};
  return ::lstat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         static_cast<std::uint64_t>(found.st_size) == bytes;
}

/// The bytes are those that the engine described.
bool is_intact(const actors::Tensor& t) {
  return actors::MappedBuffer::open({.version = {},
                                     .bytes = Bytes(static_cast<Bytes::rep>(t.bytes)),
                                     .checksum = t.checksum,
                                     .path = t.file})
      .has_value();
}

Status check_one(const actors::Tensor& t, const fs::path& folder) {
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
  if (!is_file_of_engine(t.file) || !is_regular(folder / t.file, t.bytes))
    return wrong(fmt::format("no file of {} bytes under the name it gives", t.bytes));
  return {};
}

}  // namespace

Result<TensorStore> TensorStore::create(const fs::path& parent) {
  remove_abandoned_folders(kPrefix, parent);
  TEMPER_TRY(TemporaryFolder owned, TemporaryFolder::create(kPrefix, parent));
  TensorStore store;
  store.folder_ = owned.path() / "files";  // beside the mark of its owner
  TEMPER_TRY_STATUS(make_folder(store.folder_));
  store.owned_ = std::move(owned);
  return store;
}

Status TensorStore::check(std::span<const actors::Tensor> tensors,
                          std::set<std::string>& named) const {
  if (!owned_) {
    return invalid_input(
        "tensors need an engine on the orchestrator's host: transport.kind: ipc, and /dev/shm");
  }
  if (tensors.size() > kMostTensors)
    return invalid_input(fmt::format("{} tensors, at most {}", tensors.size(), kMostTensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TEMPER_TRY_STATUS(check_one(tensors[i], folder_));
    for (const actors::Tensor& before : tensors.first(i)) {
      if (before.name == tensors[i].name)
        return invalid_input(fmt::format("two tensors \"{}\"", before.name));
    }
    if (!named.insert(tensors[i].file).second) {
      return invalid_input(
          fmt::format("tensor \"{}\": its file is that of another tensor", tensors[i].name));
    }
  }
  return {};
}

void TensorStore::take(std::vector<actors::Tensor>& tensors) {
  for (actors::Tensor& t : tensors) {
    // Engines cannot give such a name, so they cannot replace the file.
    const fs::path mine = folder_ / fmt::format(".{}", next_++);
    std::error_code gone;  // then the trainer finds no file
    fs::rename(folder_ / t.file, mine, gone);
    t.file = mine.string();
  }
}

void TensorStore::refuse(std::span<const actors::Tensor> tensors) const {
  std::error_code ignored;
  for (const actors::Tensor& t : tensors) {
    if (owned_ && is_file_of_engine(t.file))
      fs::remove(folder_ / t.file, ignored);
  }
}

void TensorStore::remove(std::span<const actors::Tensor> tensors) const {
  std::error_code ignored;
  for (const actors::Tensor& t : tensors) {
    if (is_own(t))
      fs::remove(t.file, ignored);
  }
}

void TensorStore::keep_only(std::span<const actors::Tensor> tensors) const {
  std::set<fs::path> kept;
  for (const actors::Tensor& t : tensors)
    kept.insert(t.file);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    if (!kept.contains(entry.path()))
      fs::remove_all(entry.path(), ignored);
  }
}

/// A checkpoint of an earlier process names files in a folder that is gone.
bool TensorStore::is_own(const actors::Tensor& t) const {
  return fs::path(t.file).parent_path() == folder_;
}

bool TensorStore::has(std::span<const actors::Tensor> tensors) const {
  return std::ranges::all_of(tensors,
                             [&](const actors::Tensor& t) { return is_own(t) && is_intact(t); });
}

}  // namespace temper::orchestrator
