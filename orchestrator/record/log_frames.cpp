#include "orchestrator/record/log_frames.hpp"

#include "core/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr std::size_t kChained = 12;  ///< Length and chain.

template <class T>
T read_number(const char* p) {
  T x{};
  std::memcpy(&x, p, sizeof x);
  return x;
}

}  // namespace

std::optional<FrameHeader> parse_header(std::string_view bytes) {
  if (bytes.size() < kFrameHeader)
    return std::nullopt;
  const char* p = bytes.data();
  const auto length = read_number<std::uint32_t>(p);
  const FrameHeader header{length & kLengthBits,
                           (length & kBegins) != 0,
                           (length & kNamesProgram) != 0,
                           read_number<std::uint64_t>(p + 4)};
  const auto check = static_cast<std::uint32_t>(hash64(bytes.substr(0, kChained)));
  if (header.length == 0 || check != read_number<std::uint32_t>(p + kChained))
    return std::nullopt;
  return header;
}

std::uint64_t seal_frame(std::span<char> frame, std::uint32_t flags, std::uint64_t chain_before) {
  const std::string_view all(frame.data(), frame.size());
  const auto length = static_cast<std::uint32_t>(frame.size() - kFrameHeader) | flags;
  const std::uint64_t chain = hash64(all.substr(kFrameHeader), chain_before);
  std::memcpy(frame.data(), &length, sizeof length);
  std::memcpy(frame.data() + 4, &chain, sizeof chain);
  const auto check = static_cast<std::uint32_t>(hash64(all.substr(0, kChained)));
  std::memcpy(frame.data() + kChained, &check, sizeof check);
  return chain;
}

Result<FrameReader> FrameReader::open(const std::filesystem::path& file, const LogPosition& begin) {
  TEMPER_TRY(FileReader reader, FileReader::open(file));
  return FrameReader(std::move(reader), file, begin);
}

Result<bool> FrameReader::fill(std::size_t bytes) {
  if (rest().size() >= bytes)
    return true;
  buffer_.erase(0, at_);
  at_ = 0;
  while (buffer_.size() < bytes) {
    // Reads at most one piece at a time, so that a corrupt length cannot exhaust memory.
    TEMPER_TRY(const std::size_t n, file_.read(buffer_, kPiece));
    if (n == 0)
      return false;
  }
  return true;
}

Result<std::optional<FrameReader::Frame>> FrameReader::next() {
  using None = std::optional<Frame>;
  if (ended_)
    return None();
  if (!begun_) {
    TEMPER_TRY(begun_, read_header());
    if (!begun_)
      return None();
  }
  TEMPER_TRY(const bool has_header, fill(kFrameHeader));
  if (!has_header) {
    TEMPER_TRY_STATUS(end_torn());
    return None();
  }
  const auto header = parse_header(rest());
  if (!header) {
    TEMPER_TRY(const bool zero, rest_is_zero());
    TEMPER_TRY_STATUS(zero ? end_torn() : end_damaged("its header fails its check", 1));
    return None();
  }
  TEMPER_TRY(const bool has_payload, fill(kFrameHeader + header->length));
  if (!has_payload) {
    TEMPER_TRY_STATUS(end_torn());
    return None();
  }
  const std::string_view payload = rest().substr(kFrameHeader, header->length);
  if (hash64(payload, position_.chain) != header->chain) {
    TEMPER_TRY_STATUS(end_damaged(
        "it does not continue the previous record: one of the two was changed, or a record is "
        "missing, duplicated or moved",
        kFrameHeader + header->length));
    return None();
  }
  before_ = position_;
  last_frame_ = kFrameHeader + header->length;
  at_ += last_frame_;
  position_ = {position_.bytes + static_cast<std::int64_t>(last_frame_), header->chain};
  return std::optional(Frame{payload, header->begins, header->names_program});
}

/// False: the end of the log is reached.
Result<bool> FrameReader::read_header() {
  TEMPER_TRY(const bool has_header, fill(kLogHeader));
  const std::string expected = log_header(begin_);
  if (has_header && rest().starts_with(expected)) {
    at_ += kLogHeader;
    position_.bytes += static_cast<std::int64_t>(kLogHeader);
    return true;
  }
  if (!has_header && expected.starts_with(rest())) {
    TEMPER_TRY_STATUS(end_torn());
    return false;
  }
  TEMPER_TRY(std::ignore, fill(kPiece));
  if (const std::string other = other_format(rest()); !other.empty())
    return Error{ErrorCode::Unsupported, path_.string() + " " + other};
  TEMPER_TRY(const bool zero, rest_is_zero());
  TEMPER_TRY_STATUS(zero ? end_torn()
                         : end_damaged("the file does not continue the previous file", 1));
  return false;
}

Status FrameReader::stop(const std::string& what) {
  at_ -= last_frame_;  // Still in the buffer: nothing was read since.
  position_ = before_;
  return end_damaged(what, last_frame_);
}

Status FrameReader::measure() {
  ended_ = true;
  end_.whole_bytes = byte();
  end_.file_bytes = byte() + static_cast<std::int64_t>(rest().size());
  buffer_.erase(0, at_);
  at_ = 0;
  for (;;) {
    buffer_.clear();
    TEMPER_TRY(const std::size_t n, file_.read(buffer_, kPiece));
    if (n == 0)
      return {};
    end_.file_bytes += static_cast<std::int64_t>(n);
  }
}

Status FrameReader::end_torn() {
  TEMPER_TRY_STATUS(measure());
  if (end_.file_bytes == end_.whole_bytes)
    return {};
  end_.kind = LogEnd::Kind::Torn;
  end_.what = fmt::format("the last record is truncated: {} bytes, from byte {} of {}",
                          end_.file_bytes - end_.whole_bytes,
                          end_.whole_bytes,
                          path_.filename().string());
  return {};
}

Status FrameReader::end_damaged(const std::string& why, std::size_t search_from) {
  end_.kind = LogEnd::Kind::Damaged;
  TEMPER_TRY(end_.goes_on_at, find_frame({path_, byte() + static_cast<std::int64_t>(search_from)}));
  TEMPER_TRY_STATUS(measure());
  end_.what = fmt::format("damaged at byte {} of {} ({} bytes): {}",
                          end_.whole_bytes,
                          path_.filename().string(),
                          end_.file_bytes,
                          why);
  return {};
}

/// Whether only zeros follow: space that was allocated to the file, but never written.
Result<bool> FrameReader::rest_is_zero() {
  TEMPER_TRY(FileReader file, FileReader::open(path_));
  TEMPER_TRY_STATUS(file.seek(byte()));
  std::string piece;
  for (;;) {
    piece.clear();
    TEMPER_TRY(const std::size_t n, file.read(piece, kPiece));
    if (n == 0)
      return true;
    if (piece.find_first_not_of('\0') != std::string::npos)
      return false;
  }
}

Result<std::optional<LogPlace>> find_frame(const LogPlace& from) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(from.file, error));
  if (error)
    return io_error("cannot read " + from.file.string(), error.value());
  TEMPER_TRY(FileReader file, FileReader::open(from.file));
  std::int64_t at = from.byte;
  TEMPER_TRY_STATUS(file.seek(at));
  std::string window;
  for (;;) {
    TEMPER_TRY(const std::size_t n, file.read(window, kPiece));
    if (n == 0)
      return std::optional<LogPlace>();
    std::size_t i = 0;
    for (; i + kFrameHeader <= window.size(); ++i, ++at) {
      const auto length = read_number<std::uint32_t>(window.data() + i) & kLengthBits;
      if (at + static_cast<std::int64_t>(kFrameHeader + length) <= size &&
          parse_header(std::string_view(window).substr(i)))
        return std::optional(LogPlace{from.file, at});
    }
    window.erase(0, i);
  }
}

}  // namespace temper::orchestrator
