// Compresses a sequence of records one by one (raw deflate, RFC 1951). Each record uses the earlier
// ones as its dictionary, so small similar records become very small. Records can be unpacked as
// soon as they arrive, in order, starting at a record packed right after begin().
#pragma once

#include "core/result.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace temper {

class Packer {
 public:
  Packer();
  Packer(Packer&&) noexcept;
  Packer& operator=(Packer&&) noexcept;
  ~Packer();

  /// Starts a new sequence: the next record does not depend on earlier ones.
  void begin();
  /// Appends the packed record to `to`. Requires: `piece` is not empty.
  void pack(std::string_view piece, std::string& to);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

class Unpacker {
 public:
  Unpacker();
  Unpacker(Unpacker&&) noexcept;
  Unpacker& operator=(Unpacker&&) noexcept;
  ~Unpacker();

  /// Starts a new sequence: the next record must be the first after Packer::begin().
  void begin();
  /// Replaces `to` with the unpacked record. Error Corrupt if the input is not from a Packer or the
  /// record has more than `most` bytes; then call begin() before the next unpack().
  Status unpack(std::string_view packed, std::size_t most, std::string& to);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace temper
