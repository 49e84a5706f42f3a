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

/// Frames as they were before they had chains: u32 length | u32 check | payload.
bool is_earlier_format(std::string_view file) {
  constexpr std::size_t kOldHeader = 8;
  if (file.size() < kOldHeader)
    return false;
  const auto length = read_number<std::uint32_t>(file.data());
  if (length == 0 || file.size() - kOldHeader < length)
    return false;
  return static_cast<std::uint32_t>(hash64(file.substr(kOldHeader, length))) ==
         read_number<std::uint32_t>(file.data() + 4);
}

}  // namespace

std::optional<FrameHeader> parse_header(std::string_view bytes) {
  if (bytes.size() < kFrameHeader)
    return std::nullopt;
  const char* p = bytes.data();
  const FrameHeader header{read_number<std::uint32_t>(p), read_number<std::uint64_t>(p + 4)};
  const auto check = static_cast<std::uint32_t>(hash64(bytes.substr(0, kChained)));
  if (header.length == 0 || check != read_number<std::uint32_t>(p + kChained))
    return std::nullopt;
  return header;
}

std::uint64_t seal_frame(char* frame, std::size_t payload_bytes, std::uint64_t chain_before) {
  const auto length = static_cast<std::uint32_t>(payload_bytes);
  const std::uint64_t chain =
      hash64(std::string_view(frame + kFrameHeader, payload_bytes), chain_before);
  std::memcpy(frame, &length, sizeof length);
  std::memcpy(frame + 4, &chain, sizeof chain);
  const auto check = static_cast<std::uint32_t>(hash64(std::string_view(frame, kChained)));
  std::memcpy(frame + kChained, &check, sizeof check);
  return chain;
}

Result<FrameReader> FrameReader::open(const std::filesystem::path& path) {
  TEMPER_TRY(FileReader file, FileReader::open(path));
  return FrameReader(std::move(file), path);
}

Result<bool> FrameReader::fill(std::size_t bytes) {
  if (rest().size() >= bytes)
    return true;
  buffer_.erase(0, at_);
  at_ = 0;
  while (buffer_.size() < bytes) {
    TEMPER_TRY(const std::size_t n, file_.read(buffer_, std::max(kPiece, bytes - buffer_.size())));
    if (n == 0)
      return false;
  }
  return true;
}

Result<std::optional<std::string_view>> FrameReader::next() {
  using None = std::optional<std::string_view>;
  if (ended_)
    return None();
  if (!begun_) {
    TEMPER_TRY(begun_, read_title());
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
        "it does not follow from the record before it: one of the two was changed, or a record is "
        "missing, doubled or out of its place",
        kFrameHeader + header->length));
    return None();
  }
  before_ = position_;
  last_frame_ = kFrameHeader + header->length;
  at_ += last_frame_;
  position_ = {position_.bytes + static_cast<std::int64_t>(last_frame_), header->chain};
  return std::optional(payload);
}

/// False: the reading has ended.
Result<bool> FrameReader::read_title() {
  TEMPER_TRY(const bool has_title, fill(kLogTitle.size()));
  if (has_title && rest().starts_with(kLogTitle)) {
    at_ += kLogTitle.size();
    position_.bytes = static_cast<std::int64_t>(kLogTitle.size());
    return true;
  }
  if (!has_title && kLogTitle.starts_with(rest())) {
    TEMPER_TRY_STATUS(end_torn());
    return false;
  }
  TEMPER_TRY(std::ignore, fill(kPiece));
  if (is_earlier_format(rest())) {
    return Error{ErrorCode::Unsupported,
                 path_.string() +
                     " was written by an earlier version, whose records had no chain; "
                     "read it with that version"};
  }
  TEMPER_TRY_STATUS(end_damaged("the title of the file is not " + std::string(kLogTitle), 1));
  return false;
}

Status FrameReader::stop(std::string what) {
  at_ -= last_frame_;  // still in the buffer: nothing was read since
  position_ = before_;
  return end_damaged(what, last_frame_);
}

Status FrameReader::measure() {
  ended_ = true;
  end_.whole_bytes = position_.bytes;
  end_.file_bytes = position_.bytes + static_cast<std::int64_t>(rest().size());
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
  end_.what = fmt::format("the last record was cut short: {} bytes of it, from byte {} on",
                          end_.file_bytes - end_.whole_bytes,
                          end_.whole_bytes);
  return {};
}

Status FrameReader::end_damaged(const std::string& why, std::size_t search_from) {
  end_.kind = LogEnd::Kind::Damaged;
  TEMPER_TRY(end_.goes_on_at, find_frame(search_from));
  TEMPER_TRY_STATUS(measure());
  end_.what = fmt::format(
      "damaged at byte {} of {}: {}; {}",
      end_.whole_bytes,
      end_.file_bytes,
      why,
      end_.goes_on_at
          ? fmt::format("records that look whole follow from byte {} on", *end_.goes_on_at)
          : std::string("no whole record follows"));
  return {};
}

/// Whether nothing but zeros follows: space that was given to the file, and never written.
Result<bool> FrameReader::rest_is_zero() {
  TEMPER_TRY(FileReader file, FileReader::open(path_));
  TEMPER_TRY_STATUS(file.seek(position_.bytes));
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

/// The first frame that has a right header and room for its payload, `from` bytes after the
/// current place or later.
Result<std::optional<std::int64_t>> FrameReader::find_frame(std::size_t from) {
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path_));
  TEMPER_TRY(FileReader file, FileReader::open(path_));
  std::int64_t at = position_.bytes + static_cast<std::int64_t>(from);
  TEMPER_TRY_STATUS(file.seek(at));
  std::string window;
  for (;;) {
    TEMPER_TRY(const std::size_t n, file.read(window, kPiece));
    if (n == 0)
      return std::optional<std::int64_t>();
    std::size_t i = 0;
    for (; i + kFrameHeader <= window.size(); ++i, ++at) {
      const auto length = read_number<std::uint32_t>(window.data() + i);
      if (at + static_cast<std::int64_t>(kFrameHeader + length) <= size &&
          parse_header(std::string_view(window).substr(i)))
        return std::optional(at);
    }
    window.erase(0, i);
  }
}

}  // namespace temper::orchestrator
