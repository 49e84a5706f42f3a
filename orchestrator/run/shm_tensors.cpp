#include "orchestrator/run/shm_tensors.hpp"

#include "actors/shared_memory/shared_buffer.hpp"
#include "core/files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "temper-tensors-";

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

}  // namespace

ShmTensors::ShmTensors(TemporaryFolder owned, Duration wait)
    : owned_(std::move(owned)),
      folder_(owned_.path() / "files"),  // beside the mark of its owner
      wait_(wait) {}

Result<std::unique_ptr<ShmTensors>> ShmTensors::create(Duration wait, const fs::path& parent) {
  remove_abandoned_folders(kPrefix, parent);
  TEMPER_TRY(TemporaryFolder owned, TemporaryFolder::create(kPrefix, parent));
  std::unique_ptr<ShmTensors> store(new ShmTensors(std::move(owned), wait));
  TEMPER_TRY_STATUS(make_folder(store->folder_));
  return store;
}

actors::TensorPlace ShmTensors::place() const {
  actors::TensorPlace place;
  place.folder = folder_.string();
  place.wait = wait_;
  return place;
}

std::vector<bool> ShmTensors::find(std::span<const actors::Tensor> tensors) {
  std::vector<bool> found;
  found.reserve(tensors.size());
  for (const actors::Tensor& t : tensors)
    found.push_back(is_regular(folder_ / t.file, t.bytes));  // a path that was taken is absolute
  return found;
}

void ShmTensors::take(std::vector<actors::Tensor>& tensors) {
  for (actors::Tensor& t : tensors) {
    // Engines cannot give such a name, so they cannot replace the file.
    const fs::path mine = folder_ / fmt::format(".{}", next_++);
    std::error_code gone;  // then the trainer finds no file
    fs::rename(folder_ / t.file, mine, gone);
    t.file = mine.string();
  }
}

void ShmTensors::refuse(std::span<const actors::Tensor> tensors) {
  std::error_code ignored;
  for (const actors::Tensor& t : tensors) {
    if (is_name_of_engine(t.file))
      fs::remove(folder_ / t.file, ignored);
  }
}

void ShmTensors::remove(std::span<const actors::Tensor> tensors) {
  std::error_code ignored;
  for (const actors::Tensor& t : tensors) {
    if (is_own(t))
      fs::remove(t.file, ignored);
  }
}

void ShmTensors::keep_only(std::span<const actors::Tensor> tensors) {
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
bool ShmTensors::is_own(const actors::Tensor& t) const {
  return fs::path(t.file).parent_path() == folder_;
}

bool ShmTensors::has(std::span<const actors::Tensor> tensors) {
  return std::ranges::all_of(tensors,
                             [&](const actors::Tensor& t) { return is_own(t) && is_intact(t); });
}

}  // namespace temper::orchestrator
