// The weights a trainer has published, by version: handles into its shared memory, or over tcp the
// images themselves, put together from chunks and sent on as chunks or written to a folder.
#pragma once

#include "actors/shared_memory/chunks.hpp"
#include "actors/transport/message.hpp"
#include "orchestrator/scheduler/state/events.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

namespace temper::orchestrator {

class WeightStore {
 public:
  /// A version was announced. `then` is what the scheduler is to hear once its weights are here;
  /// for shared memory that is at once, and it is returned.
  Result<std::optional<Event>> announce(const actors::WeightsHandle& handle, Event then);
  /// Adds a chunk; returns the announcement's event when the image is whole and correct.
  Result<std::optional<Event>> add(const actors::WeightsChunk& chunk);

  /// Null if the version is not (or no longer) here.
  const actors::WeightsHandle* handle(PolicyVersion version) const;
  /// Null for weights in shared memory.
  std::shared_ptr<const std::vector<std::byte>> image(PolicyVersion version) const;
  /// The image from a chunk's offset on, as chunks to be sent on: encoded once, whoever is sent
  /// them shares the bytes. None for weights in shared memory.
  std::vector<actors::OutgoingMessage> chunks(PolicyVersion version, std::uint64_t from = 0);
  /// The chunks that an engine asks for whose feeder is lost. Requires: handle(what.version).
  /// `staging`: the version that it was asked to stage and has not answered. Error: its question
  /// is no true one, in words.
  Result<std::vector<actors::OutgoingMessage>> rest(const actors::FetchWeights& what,
                                                    std::optional<PolicyVersion> staging);
  /// The image as a file in `folder`, written when it is first asked for and removed when the
  /// version is kept no more. Requires: image(version). Error: it cannot be written.
  Result<std::filesystem::path> file(PolicyVersion version, const std::filesystem::path& folder);

  void clear();
  WeightStore() = default;
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;
  ~WeightStore() { clear(); }

 private:
  static constexpr std::size_t kKept = 4;
  struct Entry {
    actors::WeightsHandle handle;
    std::shared_ptr<const std::vector<std::byte>> image;
    std::vector<actors::Slice> encoded{};  ///< Its chunks, once they were asked for.
    std::filesystem::path file{};          ///< Once it was asked for.
  };
  void keep(Entry entry);
  static void remove_file(const Entry& entry);
  /// The announcement's event if nothing of the arriving image is missing.
  Result<std::optional<Event>> keep_if_whole();

  std::map<PolicyVersion, Entry> entries_;
  struct Arriving {
    actors::WeightsHandle handle;
    actors::ChunkAssembler chunks;
    Event then;
  };
  std::optional<Arriving> arriving_;
};

}  // namespace temper::orchestrator
