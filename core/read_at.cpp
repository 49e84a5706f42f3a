#include "core/read_at.hpp"

#include <unistd.h>

#include <cerrno>

namespace temper {

Result<std::size_t> read_at(const FileDescriptor& file,
                            std::span<std::byte> to,
                            std::uint64_t offset) {
  for (std::size_t filled = 0; filled < to.size();) {
    const std::span<std::byte> left = to.subspan(filled);
    const ssize_t n =
        ::pread(file.get(), left.data(), left.size(), static_cast<off_t>(offset + filled));
    if (n == 0)
      return filled;
    if (n > 0)
      filled += static_cast<std::size_t>(n);
    else if (errno != EINTR)
      return io_error("cannot read it", errno);
  }
  return to.size();
}

}  // namespace temper
