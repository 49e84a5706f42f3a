// Reads from a place in a file. Weights are read, not mapped: a mapped file that is truncated
// meanwhile raises SIGBUS.
#pragma once

#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace temper {

/// Fills `to` from this offset in bytes. Returns the number of bytes read, which is less than the
/// size of `to` only at the end of the file. Error Io.
Result<std::size_t> read_at(const FileDescriptor& file,
                            std::span<std::byte> to,
                            std::uint64_t offset);

}  // namespace temper
