// State machine that fetches one weights image: which source to ask, and which bytes have arrived.
// Chunks are accepted in order, so the received bytes are always a prefix of the image, and each
// source is asked for the rest.
//
//   1  A source is asked for the rest.
//   2  The source sends the next chunk: keep it and wait for the one after it.
//   3  The source does not know the version, or this worker, yet: ask again every kAgain until
//      `patience` has passed since the first request; then 4.
//   4  The source was silent for `patience`, will not have the image, or sent an invalid chunk: ask
//      the next source for the rest, and the orchestrator last. The orchestrator has no deadline:
//      its silence ends the worker's connection.
//   5  All chunks have arrived and the image has the announced checksum: take().
//   6  The image has another checksum: fetch all of it again from the orchestrator. If that fails
//      too, the image is unavailable.
//
// A source that waits for its own source sends heartbeats, so it is not silent; it follows the same
// rules. So a lost worker delays those behind it by at most `patience`. No I/O, no clock.
#pragma once

#include "actors/shared_memory/chunks.hpp"

#include <optional>

namespace temper::actors {

class Fetch {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(50);

  /// `sources`: number of other workers that can be asked; 0: the orchestrator sends the image
  /// without being asked. Error: see ChunkAssembler::start().
  static Result<Fetch> start(const WeightsHandle& announced,
                             std::size_t sources,
                             Duration patience,
                             Time now);

  struct Request {
    std::optional<std::size_t> source;  ///< Index of the source; empty: the orchestrator.
    std::uint64_t offset = 0;
    bool operator==(const Request&) const = default;
  };
  /// The request to send now, if any; each request is returned once.
  std::optional<Request> next(Time now);
  /// When to call next() again at the latest; empty if there is nothing to wait for.
  std::optional<Time> deadline() const;

  /// The current source; empty: the orchestrator.
  std::optional<std::size_t> source() const;
  /// The current source is alive.
  void heard(Time now) { heard_ = now; }
  enum class Refusal { NotYet, Never };
  /// The current source refused the request.
  void refused(Refusal how, Time now);
  /// Handles a chunk from the current source. Returns true if it was kept and is new. Error: the
  /// orchestrator sent an invalid chunk.
  Result<bool> add(const WeightsChunk& chunk, Time now);

  const WeightsHandle& announced() const { return announced_; }
  /// Number of bytes received, from the start of the image.
  std::uint64_t have() const { return have_; }
  std::span<const std::byte> here() const { return image_.image().first(have_); }
  bool is_whole() const { return image_.complete(); }
  /// Returns the verified image; empty if its checksum is wrong and it is being fetched again.
  /// Error: it is unavailable. Requires: is_whole().
  Result<std::optional<std::vector<std::byte>>> take(Time now);

 private:
  Fetch(const WeightsHandle& announced,
        std::size_t sources,
        Duration patience,
        ChunkAssembler image,
        Time now);
  void switch_source(std::size_t source, Time now);

  WeightsHandle announced_;
  std::size_t sources_;
  Duration patience_;
  ChunkAssembler image_;
  std::uint64_t have_ = 0;
  std::size_t at_ = 0;  ///< Index of the current source; sources_ stands for the orchestrator.
  std::optional<Time> ask_at_;
  Time since_{};  ///< When the current source was asked first.
  Time heard_{};
  bool anew_ = false;  ///< The checksum of the image was wrong once.
};

}  // namespace temper::actors
