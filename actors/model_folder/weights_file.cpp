#include "actors/model_folder/weights_file.hpp"

#include "actors/model_folder/safetensors.hpp"
#include "core/files.hpp"
#include "core/read_at.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace temper::actors {
namespace {

constexpr std::size_t kSomeText = 1024;

std::size_t header_end(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < kSafetensorsLength)
    return bytes.size();
  std::memcpy(&length, bytes.data(), kSafetensorsLength);
  if (length <= kLongestSafetensorsHeader && length <= bytes.size() - kSafetensorsLength)
    return kSafetensorsLength + static_cast<std::size_t>(length);
  return std::min(bytes.size(), kSomeText);  // Another kind of file, which the error names.
}

}  // namespace

Result<WeightsFile> WeightsFile::open(const std::filesystem::path& path) {
  TEMPER_TRY(FileDescriptor fd, open_to_read(path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0)
    return io_error("cannot inspect " + path.string(), errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  WeightsFile file(path, std::move(fd));
  if (size == 0)
    return file;
  // Untouched pages use no memory.
  void* const memory = ::mmap(
      nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return io_error("not enough memory to read " + path.string(), errno);
  file.bytes_ = {static_cast<std::byte*>(memory), size};
  TEMPER_TRY_STATUS(file.fill(0, std::min(size, kSafetensorsLength)));
  TEMPER_TRY_STATUS(file.fill(0, header_end(file.bytes())));
  return file;
}

WeightsFile::~WeightsFile() {
  if (!bytes_.empty())
    ::munmap(bytes_.data(), bytes_.size());
}

Status WeightsFile::read(std::span<const std::byte> tensor) {
  return fill(offset_of(tensor), tensor.size());
}

void WeightsFile::drop(std::span<const std::byte> tensor) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset_of(tensor) / page * page;
  const std::size_t size = offset_of(tensor) + tensor.size() - begin;
  static_cast<void>(::madvise(bytes_.data() + begin, size, MADV_DONTNEED));
}

Status WeightsFile::fill(std::size_t begin, std::size_t size) {
  const auto read = read_at(fd_, bytes_.subspan(begin, size), begin);
  if (!read)
    return Error(read.error()).within(path_.string());
  if (*read == size)
    return {};
  return corrupt(
      fmt::format("{}: expected {} bytes, but the file now ends at byte {}; it was truncated "
                  "while it was read",
                  path_.string(),
                  bytes_.size(),
                  begin + *read));
}

}  // namespace temper::actors
