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

}  // namespace

Result<ParkedFloats> ParkedFloats::park(const FloatBuffer& floats) {
  if (floats.file().is_open()) {
    ParkedFloats same(FileDescriptor(::fcntl(floats.file().get(), F_DUPFD_CLOEXEC, 0)),
                      floats.size());
    if (!same.fd_.is_open())
      return io_error("cannot keep host memory open", errno);
    return same;
  }
  ParkedFloats parked(FileDescriptor(::memfd_create("temper-parked", MFD_CLOEXEC)), floats.size());
  if (!parked.fd_.is_open())
    return io_error("cannot create host memory", errno);
  TEMPER_TRY_STATUS(write_all(parked.fd_, floats));
  return parked;
}

Result<FloatBuffer> ParkedFloats::map() const {
  FileDescriptor fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.is_open())
    return io_error("cannot keep host memory open", errno);
  return FloatBuffer::map(std::move(fd), size_);
}

}  // namespace temper::actors
