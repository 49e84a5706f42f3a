// The weights that a trainer has published, by version: handles into its shared memory, or over TCP
// the images themselves, assembled from chunks and passed on as chunks or as files. Images that the
// trainer's worker sends on request are here only once they were requested.
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
  /// A version was announced. `then` is the event to post once its weights can be had. For shared
  /// memory, and for images on request, that is at once, and it is returned. Errors: see
  /// ChunkAssembler::start() and take().
  Result<std::optional<Event>> announce(const actors::WeightsHandle& handle, Event then);
  /// The message that requests an image from the trainer. None: it is here, or was requested, or
  /// must not be requested. Error: see ChunkAssembler::start().
  Result<std::optional<actors::FetchWeights>> request(PolicyVersion version);
  /// Adds a chunk; returns the announcement's event when an announced image is whole and correct.
  /// Errors: InvalidInput if no image was announced or requested; those of ChunkAssembler::add()
  /// and take().
  Result<std::optional<Event>> add(const actors::WeightsChunk& chunk);

  /// Null: the version is not here, or no longer.
  const actors::WeightsHandle* handle(PolicyVersion version) const;
  /// Null for weights in shared memory, and for images that were not requested.
  std::shared_ptr<const std::vector<std::byte>> image(PolicyVersion version) const;
  /// The image from a chunk's offset on, as chunks. They are encoded once; all receivers share the
  /// bytes. Empty if the image is not here.
  std::vector<actors::OutgoingMessage> chunks(PolicyVersion version, std::uint64_t from = 0);
  /// Validates the request of an engine whose feeders are lost. Requires: handle(what.version).
  /// `staging`: the version that it was told to stage and has not staged yet. Error: the request is
  /// invalid.
  Status check(const actors::FetchWeights& what, std::optional<PolicyVersion> staging) const;
  /// The image as a file in `folder`, written at the first call and removed with the version.
  /// Requires: image(version). Error: it cannot be written.
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
    std::vector<actors::Slice> encoded{};               ///< Its chunks, once they were requested.
    std::filesystem::path file{};                       ///< Once it was requested.
    std::optional<actors::ChunkAssembler> requested{};  ///< From the trainer, until it is whole.
  };
  void keep(Entry entry);
  static void remove_file(const Entry& entry);
  void remove_oldest();
  static Status add_requested(Entry& entry, const actors::WeightsChunk& chunk);
  /// The announcement's event if the arriving image is complete.
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
