#include "actors/policy/parked_floats.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace temper::actors {
namespace {

Status write_all(const FileDescriptor& fd, const FloatBuffer& floats) {
  const auto* data = reinterpret_cast<const char*>(floats.data());
  const auto size = static_cast<std::size_t>(floats.bytes().count());
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::pwrite(fd.get(), data + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return io_error(fmt::format("cannot write {} bytes of host memory", size),
                      n == 0 ? EIO : errno);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<FileDescriptor> duplicate(const FileDescriptor& fd) {
  FileDescriptor other(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!other.is_open())
    return io_error("cannot open host memory again", errno);
  return other;
}

}  // namespace

Result<ParkedFloats> ParkedFloats::park(const FloatBuffer& floats) {
  if (floats.file().is_open()) {
    TEMPER_TRY(FileDescriptor same, duplicate(floats.file()));
    return ParkedFloats(std::move(same), floats.size());
  }
  ParkedFloats parked(FileDescriptor(::memfd_create("temper-parked", MFD_CLOEXEC)), floats.size());
  if (!parked.fd_.is_open())
    return io_error("cannot create host memory", errno);
  TEMPER_TRY_STATUS(write_all(parked.fd_, floats));
  return parked;
}

Result<FloatBuffer> ParkedFloats::map() const {
  TEMPER_TRY(FileDescriptor fd, duplicate(fd_));
  return FloatBuffer::map(std::move(fd), size_);
}

}  // namespace temper::actors
