// The frames in the files of events.log (log_files.hpp), little endian:
//
//   u32 length | u64 chain | u32 check | payload | u32 length | ...
//
//   length  of the payload; the highest bit: it is packed without what came before (kBegins); the
//           one below: it is no packed record, but a LogOrigin (kNamesProgram)
//   chain   XXH3-64 of the payload, seeded with the chain of the frame before (of the first: 0).
//           A payload that was changed, and a frame that is missing, doubled or moved, break it.
//   check   low half of the XXH3-64 of length and chain, so that a length can be believed before
//           its payload is there
//
// A log that ends inside a frame, or in zeros, is torn: the process or the machine ended while the
// frame was written. Anything else that is wrong is damage: no crash of ours leaves it.
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
  std::uint32_t length = 0;  ///< Of the payload.
  bool begins = false;
  bool names_program = false;
  std::uint64_t chain = 0;
};
/// Of the frame that begins here. None: these bytes are no header, or too few.
std::optional<FrameHeader> parse_header(std::string_view bytes);

/// Fills in the header at `frame`'s begin. `flags`: kBegins, kNamesProgram. Requires: the frame is
/// kFrameHeader bytes and a payload. Returns its chain.
std::uint64_t seal_frame(std::span<char> frame, std::uint32_t flags, std::uint64_t chain_before);

/// A place in one of the files.
struct LogPlace {
  std::filesystem::path file;
  std::int64_t byte = 0;
  bool operator==(const LogPlace&) const = default;
};

/// How the whole part of a log ends, and in which file.
struct LogEnd {
  enum class Kind { Whole, Torn, Damaged };
  Kind kind = Kind::Whole;
  std::size_t file = 1;          ///< Its n (log_file()).
  std::int64_t whole_bytes = 0;  ///< Of this file: up to here all is whole.
  std::int64_t file_bytes = 0;   ///< Of this file.
  /// Damaged: where the next frame begins that looks whole.
  std::optional<LogPlace> goes_on_at;
  std::string what;  ///< Of Torn and Damaged: in words, with the byte.
};

/// The first frame that has a right header and room for its payload, from this place of its file
/// on.
Result<std::optional<LogPlace>> find_frame(const LogPlace& from);

/// Reads the frames of one file one after the other, with no more in memory than the largest.
class FrameReader {
 public:
  struct Frame {
    std::string_view payload;  ///< There until the next call.
    bool begins = false;
    bool names_program = false;
  };
  /// `begin`: where the file begins in its log.
  static Result<FrameReader> open(const std::filesystem::path& file, const LogPosition& begin);

  /// The next frame. None: end() says why. Error: the file cannot be read, or is of another format.
  Result<std::optional<Frame>> next();
  /// After the frame that next() returned.
  const LogPosition& position() const { return position_; }
  /// Bytes of the file that were read whole.
  std::int64_t byte() const { return position_.bytes - begin_.bytes; }
  /// At which the frame that next() returned begins.
  std::int64_t frame_byte() const { return before_.bytes - begin_.bytes; }
  /// Requires: next() has returned none. Its `file` is not set.
  const LogEnd& end() const { return end_; }
  /// Ends the reading here: the frame that next() returned is whole, but what it says cannot be.
  Status stop(const std::string& what);

 private:
  FrameReader(FileReader file, std::filesystem::path path, const LogPosition& begin)
      : file_(std::move(file)), path_(std::move(path)), begin_(begin), position_(begin) {}
  /// Makes `bytes` of the file available from the current place on, if it has so many.
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
  std::size_t at_ = 0;          ///< In buffer_: of the next frame.
  std::size_t last_frame_ = 0;  ///< Bytes of the frame that next() returned.
  LogPosition position_;
  LogPosition before_;  ///< That frame.
  bool begun_ = false, ended_ = false;
  LogEnd end_;
};

}  // namespace temper::orchestrator
