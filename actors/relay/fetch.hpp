// An image on its way to this worker: where its next chunk is to come from, and what of it is here.
// Chunks are taken in order, so that what is here is always the image's beginning and whoever is
// asked is asked for the rest.
//
//   1  a source is asked for the rest.
//   2  it sends the next chunk: kept, and the chunk after it is awaited.
//   3  it has not heard of the version yet, or not of this worker: it is asked again every kAgain,
//      until `patience` is over since it was asked first: 4.
//   4  it was silent for `patience`, says that it will not have the image, or sent what cannot be:
//      the next source is asked for the rest, after the last the orchestrator. That one needs no
//      deadline: its silence ends the worker's connection.
//   5  all chunks are here and the whole has the checksum that was announced: take().
//   6  the whole has another: it is asked for anew, all of it, of the orchestrator; if that does
//      not help, the image cannot be had.
//
// A source that waits for its own source says so by heartbeats, which is no silence; that one goes
// to its next source by the same rule. So a lost worker stops those behind it for `patience`.
// No I/O, no clock.
#pragma once

#include "actors/shared_memory/chunks.hpp"

#include <optional>

namespace temper::actors {

class Fetch {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(50);

  /// `sources`: how many other workers may be asked; none: the orchestrator sends it unasked.
  /// Error: as ChunkAssembler::start().
  static Result<Fetch> start(const WeightsHandle& announced,
                             std::size_t sources,
                             Duration patience,
                             Time now);

  struct Ask {
    std::optional<std::size_t> source;  ///< None: the orchestrator.
    std::uint64_t offset = 0;
    bool operator==(const Ask&) const = default;
  };
  /// What is to be asked now, if anything; once for each time.
  std::optional<Ask> next(Time now);
  /// When to come again with next(), whatever else happens; none: there is nothing to wait for.
  std::optional<Time> deadline() const;

  /// Who is asked now; none: the orchestrator.
  std::optional<std::size_t> source() const;
  /// The source gave a sign of life.
  void heard(Time now) { heard_ = now; }
  enum class Refusal { NotYet, Never };
  /// The source does not send.
  void refused(Refusal how, Time now);
  /// Of the source that is asked. True: it is kept, and was not here before. Error: the
  /// orchestrator sent what cannot be.
  Result<bool> add(const WeightsChunk& chunk, Time now);

  const WeightsHandle& announced() const { return announced_; }
  /// The bytes that are here, from the beginning on.
  std::uint64_t have() const { return have_; }
  std::span<const std::byte> here() const { return image_.image().first(have_); }
  bool is_whole() const { return image_.complete(); }
  /// The verified image; null: it has to be fetched anew, which has begun. Error: it cannot be had.
  /// Requires: is_whole().
  Result<std::optional<std::vector<std::byte>>> take(Time now);

 private:
  Fetch(const WeightsHandle& announced,
        std::size_t sources,
        Duration patience,
        ChunkAssembler image,
        Time now);
  void go_to(std::size_t source, Time now);

  WeightsHandle announced_;
  std::size_t sources_;
  Duration patience_;
  ChunkAssembler image_;
  std::uint64_t have_ = 0;
  std::size_t at_ = 0;  ///< The source; sources_: the orchestrator.
  std::optional<Time> ask_at_;
  Time since_{};  ///< When this source was asked first.
  Time heard_{};
  bool anew_ = false;  ///< The whole was wrong once.
};

}  // namespace temper::actors
