#include "actors/policy/parked_floats.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace temper::actors {
namespace {

/// Transfers all bytes with calls of `move(pointer, bytes left, offset) -> ssize_t`.
template <class Byte, class Move>
Status move_all(Byte* data, Bytes bytes, std::string_view what, Move move) {
  const auto size = static_cast<std::size_t>(bytes.count());
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = move(data + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return io_error(fmt::format("cannot {} {} bytes of host memory", what, size),
                      n == 0 ? EIO : errno);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

Result<ParkedFloats> ParkedFloats::copy_of(const FloatBuffer& floats) {
  ParkedFloats parked(FileDescriptor(::memfd_create("temper-parked", MFD_CLOEXEC)), floats.size());
  if (!parked.fd_.is_open())
    return io_error("cannot create host memory", errno);
  TEMPER_TRY_STATUS(move_all(reinterpret_cast<const char*>(floats.data()),
                             floats.bytes(),
                             "write",
                             [&](const char* from, std::size_t bytes, off_t at) {
                               return ::pwrite(parked.fd_.get(), from, bytes, at);
                             }));
  return parked;
}

Result<FloatBuffer> ParkedFloats::read() const {
  FloatBuffer floats(size_);
  TEMPER_TRY_STATUS(move_all(
      reinterpret_cast<char*>(floats.data()),
      bytes(),
      "read",
      [&](char* to, std::size_t bytes, off_t at) { return ::pread(fd_.get(), to, bytes, at); }));
  return floats;
}

}  // namespace temper::actors
