#include "core/gzip_text.hpp"

#include "core/check.hpp"

#include <zlib.h>

namespace temper {

std::string to_gzip(std::string_view text) {
  constexpr int kLevel = 1, kGzip = 15 + 16, kMemory = 8;
  z_stream z{};
  TEMPER_CHECK(deflateInit2(&z, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) == Z_OK,
               "no memory for the compressor (256 KiB)");
  std::string out(deflateBound(&z, static_cast<uLong>(text.size())), '\0');
  z.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write to it
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  TEMPER_CHECK(::deflate(&z, Z_FINISH) == Z_STREAM_END, "deflateBound() was too small");
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

}  // namespace temper
