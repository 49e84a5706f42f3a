// The bytes of events.log: a title and a sequence of frames (little endian),
//
//   "temperL2" | u32 length | u64 chain | u32 check | payload | u32 length | ...
//
//   chain   XXH3-64 of the payload, seeded with the chain of the frame before (of the first: 0).
//           A payload that was changed, and a frame that is missing, doubled or moved, break it.
//   check   low half of the XXH3-64 of length and chain, so that a length can be believed before
//           its payload is there
//
// A log that ends inside a frame, or in zeros, is torn: the process or the machine ended while the
// frame was written. Anything else that is wrong is damage: no crash of ours leaves it.
#pragma once

#include "core/files.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace temper::orchestrator {

inline constexpr std::string_view kLogTitle = "temperL2";
inline constexpr std::size_t kFrameHeader = 16;

/// Where in a log: how many bytes, and the chain of the frame that ends there.
struct LogPosition {
  std::int64_t bytes = 0;
  std::uint64_t chain = 0;
  bool operator==(const LogPosition&) const = default;
};

struct FrameHeader {
  std::uint32_t length = 0;  ///< Of the payload.
  std::uint64_t chain = 0;
};
/// Of the frame that begins here. None: these bytes are no header, or too few.
std::optional<FrameHeader> parse_header(std::string_view bytes);

/// Fills in the header at `frame`'s begin. Requires: the frame is kFrameHeader bytes and a payload.
/// Returns its chain.
std::uint64_t seal_frame(char* frame, std::size_t payload_bytes, std::uint64_t chain_before);

/// How the whole part of a log ends.
struct LogEnd {
  enum class Kind { Whole, Torn, Damaged };
  Kind kind = Kind::Whole;
  std::int64_t whole_bytes = 0;  ///< Up to here all is whole.
  std::int64_t file_bytes = 0;
  /// Damaged: where the next frame begins that looks whole.
  std::optional<std::int64_t> goes_on_at;
  std::string what;  ///< Of Torn and Damaged: in words, with the byte.
};

/// Reads the frames of a file one after the other, with no more in memory than the largest.
class FrameReader {
 public:
  static Result<FrameReader> open(const std::filesystem::path& path);

  /// The payload of the next frame, there until the next call. None: end() says why. Error: the
  /// file cannot be read, or is of another format.
  Result<std::optional<std::string_view>> next();
  /// After the frame that next() returned.
  const LogPosition& position() const { return position_; }
  /// Requires: next() has returned none.
  const LogEnd& end() const { return end_; }
  /// Ends the reading here: the frame that next() returned is whole, but what it says cannot be.
  Status stop(std::string what);

 private:
  explicit FrameReader(FileReader file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}
  /// Makes `bytes` of the file available from the current place on, if it has so many.
  Result<bool> fill(std::size_t bytes);
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }
  Result<bool> read_title();
  Status end_torn();
  Status end_damaged(const std::string& why, std::size_t search_from);
  Result<bool> rest_is_zero();
  Result<std::optional<std::int64_t>> find_frame(std::size_t from);
  Status measure();

  FileReader file_;
  std::filesystem::path path_;
  std::string buffer_;
  std::size_t at_ = 0;          ///< In buffer_: of the next frame.
  std::size_t last_frame_ = 0;  ///< Bytes of the frame that next() returned.
  LogPosition position_;
  LogPosition before_;  ///< That frame.
  bool begun_ = false, ended_ = false;
  LogEnd end_;
};

}  // namespace temper::orchestrator
