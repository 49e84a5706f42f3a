// Pieces packed one by one (raw deflate, RFC 1951), each with what came before it as its
// dictionary, so that small pieces that resemble each other become very small. Each piece can be
// unpacked as soon as it is there, in the order in which they were packed, from a beginning on.
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

  /// Forgets what came before: the next piece is a beginning.
  void begin();
  /// Appends the packed piece to `to`. Requires: it is not empty.
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

  /// The next piece is a beginning.
  void begin();
  /// Replaces `to` by the piece. Error (Corrupt): it is not what a Packer makes, or has more than
  /// `most` bytes; no further piece can be unpacked then before the next beginning.
  Status unpack(std::string_view packed, std::size_t most, std::string& to);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace temper
