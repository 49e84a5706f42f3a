#include "orchestrator/run/tensor_store.hpp"

#include "core/hash.hpp"
#include "core/json.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
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
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
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
  const FileDescriptor fd(::open(t.file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.is_open() || !is_regular(t.file, t.bytes))
    return false;
  if (t.bytes == 0)
    return t.checksum == hash64(std::string_view());
  void* const mapped = ::mmap(nullptr, t.bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED)
    return false;
  const std::uint64_t found = hash64({static_cast<const std::byte*>(mapped), t.bytes});
  ::munmap(mapped, t.bytes);
  return found == t.checksum;
}

Error failed_call(const fs::path& path) {
  return {ErrorCode::Io, fmt::format("{}: {}", path.string(), std::strerror(errno))};
}

/// Open and locked; not open if another process holds it.
FileDescriptor locked(const fs::path& folder) {
  FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.is_open() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    fd.reset();
  return fd;
}

/// Folders whose process was killed.
void remove_abandoned(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    struct stat found {};
    if (!entry.path().filename().string().starts_with(kPrefix) ||
        ::lstat(entry.path().c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
        found.st_uid != ::geteuid())
      continue;
    if (const FileDescriptor lock = locked(entry.path()); lock.is_open())
      fs::remove_all(entry.path(), ignored);
  }
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
  remove_abandoned(parent);
  // Another process may take a folder for abandoned before it is locked.
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::string name = (parent / kPrefix).string() + "XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      return failed_call(name);
    FileDescriptor lock = locked(name);
    struct stat found {};
    if (lock.is_open() && ::lstat(name.c_str(), &found) == 0)
      return TensorStore(std::move(name), std::move(lock));
  }
  return Error{ErrorCode::Io, fmt::format("{}: new folders disappear at once", parent.string())};
}

TensorStore& TensorStore::operator=(TensorStore&& other) noexcept {
  if (this != &other) {
    remove_folder();
    folder_ = std::exchange(other.folder_, {});
    lock_ = std::move(other.lock_);
    next_ = other.next_;
  }
  return *this;
}

TensorStore::~TensorStore() {
  remove_folder();
}

void TensorStore::remove_folder() noexcept {
  std::error_code ignored;
  if (lock_.is_open())
    fs::remove_all(folder_, ignored);
}

Status TensorStore::check(std::span<const actors::Tensor> tensors,
                          std::set<std::string>& named) const {
  if (!lock_.is_open()) {
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
    if (lock_.is_open() && is_file_of_engine(t.file))
      fs::remove(folder_ / t.file, ignored);
  }
}

void TensorStore::remove(std::span<const actors::Tensor> tensors) const {
  std::error_code ignored;
  for (const actors::Tensor& t : tensors)
    fs::remove(t.file, ignored);
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

bool TensorStore::has(std::span<const actors::Tensor> tensors) const {
  return std::ranges::all_of(tensors, [&](const actors::Tensor& t) {
    return fs::path(t.file).parent_path() == folder_ && is_intact(t);
  });
}

}  // namespace temper::orchestrator
