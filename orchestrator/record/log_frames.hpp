// The frames in the files of events.log (log_files.hpp), little endian:
//
//   u32 length | u64 chain | u32 check | payload | u32 length | ...
//
//   length  of the payload. Highest bit: it is packed without its predecessors (kBegins). Next
//           bit: it is a LogOrigin, not a packed record (kNamesProgram)
//   chain   XXH3-64 of the payload, seeded with the chain of the previous frame (of the first: 0).
//           A changed payload, and a missing, duplicated or moved frame, break the chain
//   check   low half of the XXH3-64 of length and chain, so that the length can be trusted before
//           the payload is read
//
// A log that ends inside a frame, or in zeros, is torn: the process or the machine stopped while
// the frame was written. Any other defect is damage, which no crash of Temper causes.
#pragma once

#include "core/files.hpp"
#include "orchestrator/record/log_files.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace temper::orchestrator {

inline constexpr std::size_t kFrameHeader = 16;
inline constexpr std::uint32_t kBegins = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kNamesProgram = std::uint32_t{1} << 30;
inline constexpr std::uint32_t kLengthBits = kNamesProgram - 1;

struct FrameHeader {
  std::uint32_t length = 0;  ///< Bytes of the payload.
  bool begins = false;
  bool names_program = false;
  std::uint64_t chain = 0;
};
/// The header that begins here; none if these bytes are invalid or too few.
std::optional<FrameHeader> parse_header(std::string_view bytes);

/// Fills in the header at the beginning of `frame` and returns its chain. `flags`: kBegins,
/// kNamesProgram. Requires: `frame` is kFrameHeader bytes followed by a payload.
std::uint64_t seal_frame(std::span<char> frame, std::uint32_t flags, std::uint64_t chain_before);

/// A position in one of the files.
struct LogPlace {
  std::filesystem::path file;
  std::int64_t byte = 0;
  bool operator==(const LogPlace&) const = default;
};

/// How the whole part of a log ends, and in which file.
struct LogEnd {
  enum class Kind { Whole, Torn, Damaged };
  Kind kind = Kind::Whole;
  std::size_t file = 1;          ///< Number of the file (log_file()).
  std::int64_t whole_bytes = 0;  ///< Bytes of this file that are whole.
  std::int64_t file_bytes = 0;   ///< Size of this file.
  /// Damaged: position of the next frame that looks whole.
  std::optional<LogPlace> goes_on_at;
  std::string what;  ///< Torn, Damaged: description with the byte position.
};

/// The first frame at or after this place of its file that has a valid header and room for its
/// payload. Empty if there is none. Errors: Io; those of open_to_read().
Result<std::optional<LogPlace>> find_frame(const LogPlace& from);

/// Reads the frames of one file in order. Memory: the largest frame.
class FrameReader {
 public:
  struct Frame {
    std::string_view payload;  ///< Valid until the next call.
    bool begins = false;
    bool names_program = false;
  };
  /// `begin`: position of the file in its log. Errors: see open_to_read(). Contents are not read
  /// yet.
  static Result<FrameReader> open(const std::filesystem::path& file, const LogPosition& begin);

  /// The next frame. None: see end(). Error: the file cannot be read, or has another format.
  Result<std::optional<Frame>> next();
  /// Position behind the frame that next() returned.
  const LogPosition& position() const { return position_; }
  /// Bytes of the file that are whole.
  std::int64_t byte() const { return position_.bytes - begin_.bytes; }
  /// Position at which the frame that next() returned begins.
  std::int64_t frame_byte() const { return before_.bytes - begin_.bytes; }
  /// Requires: next() returned none. Its `file` is not set.
  const LogEnd& end() const { return end_; }
  /// Ends reading here, because the contents of the frame that next() returned are impossible.
  /// end() is then Damaged and contains `what`. Error: the file cannot be read.
  Status stop(const std::string& what);

 private:
  FrameReader(FileReader file, std::filesystem::path path, const LogPosition& begin)
      : file_(std::move(file)), path_(std::move(path)), begin_(begin), position_(begin) {}
  /// Buffers `bytes` of the file from the current position, if it has as many.
  Result<bool> fill(std::size_t bytes);
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }
  Result<bool> read_header();
  Status end_torn();
  Status end_damaged(const std::string& why, std::size_t search_from);
  Result<bool> rest_is_zero();
  Status measure();

  FileReader file_;
  std::filesystem::path path_;
  LogPosition begin_;
  std::string buffer_;
  std::size_t at_ = 0;          ///< Offset of the next frame in buffer_.
  std::size_t last_frame_ = 0;  ///< Bytes of the frame that next() returned.
  LogPosition position_;
  LogPosition before_;  ///< Position of that frame.
  bool begun_ = false, ended_ = false;
  LogEnd end_;
};

}  // namespace temper::orchestrator
