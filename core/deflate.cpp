#include "core/deflate.hpp"

#include "core/check.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

namespace temper {
namespace {

constexpr int kRaw = -15;  ///< No header, the largest window.
/// Every flush ends with these bytes, so the packed record omits them.
constexpr std::string_view kMark{"\x00\x00\xff\xff", 4};

Bytef* input(std::string_view data) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // zlib does not write to it
}

}  // namespace

struct Packer::Stream {
  Stream() {
    constexpr int kLevel = 2, kMemory = 8;
    TEMPER_CHECK(deflateInit2(&z, kLevel, Z_DEFLATED, kRaw, kMemory, Z_DEFAULT_STRATEGY) == Z_OK,
                 "no memory for the compressor (256 KiB)");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { deflateEnd(&z); }
  z_stream z{};
};

Packer::Packer() : stream_(std::make_unique<Stream>()) {}
Packer::Packer(Packer&&) noexcept = default;
Packer& Packer::operator=(Packer&&) noexcept = default;
Packer::~Packer() = default;

void Packer::begin() {
  deflateReset(&stream_->z);
}

void Packer::pack(std::string_view piece, std::string& to) {
  TEMPER_CHECK(!piece.empty(), "an empty record cannot be packed");
  std::array<char, 4096> room{};
  z_stream& z = stream_->z;
  z.next_in = input(piece);
  z.avail_in = static_cast<uInt>(piece.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    ::deflate(&z, Z_SYNC_FLUSH);
    to.append(room.data(), room.size() - z.avail_out);
  } while (z.avail_out == 0);
  to.resize(to.size() - kMark.size());
}

struct Unpacker::Stream {
  Stream() {
    TEMPER_CHECK(inflateInit2(&z, kRaw) == Z_OK, "no memory for the decompressor (40 KiB)");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(&z); }
  z_stream z{};
};

Unpacker::Unpacker() : stream_(std::make_unique<Stream>()) {}
Unpacker::Unpacker(Unpacker&&) noexcept = default;
Unpacker& Unpacker::operator=(Unpacker&&) noexcept = default;
Unpacker::~Unpacker() = default;

void Unpacker::begin() {
  inflateReset(&stream_->z);
}

Status Unpacker::unpack(std::string_view packed, std::size_t most, std::string& to) {
  to.clear();
  std::array<char, 4096> room{};
  z_stream& z = stream_->z;
  for (const std::string_view part : {packed, kMark}) {
    z.next_in = input(part);
    z.avail_in = static_cast<uInt>(part.size());
    for (;;) {
      z.next_out = reinterpret_cast<Bytef*>(room.data());
      z.avail_out = static_cast<uInt>(room.size());
      const int result = ::inflate(&z, Z_SYNC_FLUSH);
      if (result != Z_OK && result != Z_BUF_ERROR)
        return corrupt("not a valid deflate record");
      to.append(room.data(), room.size() - z.avail_out);
      if (to.size() > most)
        return corrupt(fmt::format("the record unpacks to more than {} bytes", most));
      if (z.avail_out > 0)
        break;
    }
    if (z.avail_in > 0)
      return corrupt("not a valid deflate record");
  }
  return {};
}

}  // namespace temper
