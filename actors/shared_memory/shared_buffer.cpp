#include "actors/shared_memory/shared_buffer.hpp"

#include "core/file_descriptor.hpp"
#include "core/hash.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace temper::actors {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
constexpr int kSealsNeeded = F_SEAL_SHRINK | F_SEAL_WRITE;

std::string name_of(const WeightsHandle& h) {
  if (!h.path.empty())
    return fmt::format("weights of version {} in {}", h.version, h.path);
  return fmt::format("weights of version {} in process {}", h.version, h.pid);
}

Error released(const WeightsHandle& h, std::string_view why) {
  return {ErrorCode::Unavailable,
          fmt::format(
              "{}: {}; the writer ended or released them; publish them again", name_of(h), why)};
}

/// Checks that the memory has the announced size and is sealed, so that it is safe to map.
Status check_sealed(const FileDescriptor& fd, const WeightsHandle& handle) {
  struct stat status {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || ::fstat(fd.get(), &status) != 0)
    return released(handle, "the descriptor is not a memfd");
  if ((seals & kSealsNeeded) != kSealsNeeded)
    return released(handle, "the memfd is not sealed, so it is not an image");
  if (status.st_size != handle.bytes.count()) {
    return corrupt(fmt::format(
        "{}: expected {} bytes, found {}", name_of(handle), handle.bytes.count(), status.st_size));
  }
  return {};
}

/// Files are written under another name, renamed once, and later deleted; an open file stays
/// intact.
Result<FileDescriptor> open_file(const WeightsHandle& handle) {
  FileDescriptor fd(::open(handle.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) {
    return io_error(
        fmt::format("{}: cannot open the file; with `transport.weights: folder` this host must "
                    "see the run folder under the same path as the orchestrator",
                    name_of(handle)),
        errno);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size != handle.bytes.count()) {
    return corrupt(fmt::format(
        "{}: expected a regular file of {} bytes", name_of(handle), handle.bytes.count()));
  }
  return fd;
}

}  // namespace

Result<SharedBuffer::Writer> SharedBuffer::Writer::create(PolicyVersion version) {
  const std::string name = fmt::format("temper-weights-{}", version);
  FileDescriptor fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0)
    return io_error("cannot create shared memory for weights", errno);
  return Writer(version, std::move(fd));
}

Status SharedBuffer::Writer::append(std::span<const std::byte> part) {
  hash_.add(part);
  while (!part.empty()) {
    const ssize_t n = ::write(fd_.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      return io_error(fmt::format("cannot write {} bytes of weights to shared memory, after {}",
                                  part.size(),
                                  bytes_.count()),
                      errno);
    }
    bytes_ += Bytes(n);
    part = part.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<SharedBuffer> SharedBuffer::Writer::finish() && {
  if (::fcntl(fd_.get(), F_ADD_SEALS, kSeals) != 0)
    return io_error("cannot seal the shared memory of weights", errno);
  const WeightsHandle handle{.version = version_,
                             .bytes = bytes_,
                             .checksum = hash_.digest(),
                             .pid = ::getpid(),
                             .fd = fd_.get()};
  return SharedBuffer(std::move(fd_), handle);
}

Result<SharedBuffer> SharedBuffer::create(PolicyVersion version, std::span<const std::byte> image) {
  TEMPER_TRY(Writer writer, Writer::create(version));
  TEMPER_TRY_STATUS(writer.append(image));
  return std::move(writer).finish();
}

Result<MappedBuffer> MappedBuffer::open(const WeightsHandle& handle) {
  if (!handle.path.empty() && handle.bytes >= Bytes(0)) {
    TEMPER_TRY(const FileDescriptor file, open_file(handle));
    return map(file.get(), handle);
  }
  if (handle.fd < 0 || handle.pid <= 0 || handle.bytes < Bytes(0))
    return invalid_input(name_of(handle) + ": the handle refers to no shared memory");
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.pid, handle.fd);
  // O_NONBLOCK: the number may now belong to a pipe or a device, and opening that must not block.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 && errno == EACCES) {
    return io_error(
        fmt::format("{}: cannot open {}; actors that share memory must run as one user in "
                    "one container, otherwise set transport.kind to tcp",
                    name_of(handle),
                    path),
        errno);
  }
  if (fd.get() < 0)
    return released(handle, io_error("cannot open " + path, errno).context);
  TEMPER_TRY_STATUS(check_sealed(fd, handle));
  return map(fd.get(), handle);
}

Result<MappedBuffer> MappedBuffer::map(int fd, const WeightsHandle& handle) {
  const auto size = static_cast<std::size_t>(handle.bytes.count());
  MappedBuffer buffer({});
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
      return io_error(fmt::format("cannot map {}", name_of(handle)), errno);
    buffer.bytes_ = {static_cast<const std::byte*>(address), size};
  }
  if (hash64(buffer.bytes()) != handle.checksum) {
    return corrupt(name_of(handle) +
                   ": the checksum does not match the announced one; publish them again");
  }
  return buffer;
}

MappedBuffer::MappedBuffer(MappedBuffer&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

MappedBuffer& MappedBuffer::operator=(MappedBuffer&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedBuffer::~MappedBuffer() {
  if (!bytes_.empty())
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace temper::actors
