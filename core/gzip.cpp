#include "core/gzip.hpp"

#include "core/replace.hpp"

#include <zlib.h>

#include <array>

namespace temper {

struct GzipFile::Stream {
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { deflateEnd(&z); }
  z_stream z{};
};

GzipFile::GzipFile(AppendFile file, std::unique_ptr<Stream> stream)
    : file_(std::move(file)), stream_(std::move(stream)) {}
GzipFile::GzipFile(GzipFile&&) noexcept = default;
GzipFile& GzipFile::operator=(GzipFile&&) noexcept = default;
GzipFile::~GzipFile() = default;

Result<GzipFile> GzipFile::create(const std::filesystem::path& path) {
  constexpr int kLevel = 1, kGzip = 15 + 16, kMemory = 8;
  TEMPER_TRY(AppendFile file, AppendFile::open(path, 0));
  auto stream = std::make_unique<Stream>();
  if (deflateInit2(&stream->z, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return Error{ErrorCode::OutOfMemory, "not enough memory to compress " + path.string()};
  return GzipFile(std::move(file), std::move(stream));
}

Status GzipFile::put_in_place(const std::filesystem::path& from, const std::filesystem::path& to) {
  TEMPER_TRY(file_, temper::put_in_place(std::move(file_), from, to));
  return {};
}

Status GzipFile::append(std::string_view data) {
  return deflate(data, Z_NO_FLUSH);
}

Status GzipFile::close() {
  return deflate({}, Z_FINISH);
}

Status GzipFile::deflate(std::string_view data, int flush) {
  std::array<char, std::size_t{1} << 16> room{};
  z_stream& z = stream_->z;
  z.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // zlib does not write to it
  z.avail_in = static_cast<uInt>(data.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    ::deflate(&z, flush);
    const std::size_t made = room.size() - z.avail_out;
    if (made > 0)
      TEMPER_TRY_STATUS(file_.append({room.data(), made}));
  } while (z.avail_out == 0);
  return {};
}

}  // namespace temper
