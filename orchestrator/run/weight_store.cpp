#include "orchestrator/run/weight_store.hpp"

#include "core/files.hpp"
#include "core/msgpack.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

Result<std::optional<Event>> WeightStore::announce(const actors::WeightsHandle& handle,
                                                   Event then) {
  if (handle.fd >= 0) {
    keep({handle, nullptr});
    return std::optional(std::move(then));
  }
  if (handle.on_request) {
    TEMPER_TRY_STATUS(actors::ChunkAssembler::check(handle, actors::kLargestImage));
    keep({handle, nullptr});
    return std::optional(std::move(then));
  }
  TEMPER_TRY(auto chunks, actors::ChunkAssembler::start(handle, actors::kLargestImage));
  arriving_ = Arriving{handle, std::move(chunks), std::move(then)};
  return keep_if_whole();
}

Result<std::optional<actors::FetchWeights>> WeightStore::request(PolicyVersion version) {
  using Request = std::optional<actors::FetchWeights>;
  const auto it = entries_.find(version);
  if (it == entries_.end())
    return Request();
  Entry& entry = it->second;
  if (!entry.handle.on_request || entry.image != nullptr || entry.requested)
    return Request();
  TEMPER_TRY(entry.requested, actors::ChunkAssembler::start(entry.handle, actors::kLargestImage));
  return Request({version, entry.handle.checksum, 0});
}

Result<std::optional<Event>> WeightStore::add(const actors::WeightsChunk& chunk) {
  if (const auto it = entries_.find(chunk.version); it != entries_.end() && it->second.requested) {
    TEMPER_TRY_STATUS(add_requested(it->second, chunk));
    return std::optional<Event>();
  }
  if (!arriving_) {
    return invalid_input(fmt::format("a chunk of version {} without announcement", chunk.version));
  }
  TEMPER_TRY_STATUS(arriving_->chunks.add(chunk));
  return keep_if_whole();
}

Status WeightStore::add_requested(Entry& entry, const actors::WeightsChunk& chunk) {
  TEMPER_TRY_STATUS(entry.requested->add(chunk));
  if (!entry.requested->complete())
    return {};
  TEMPER_TRY(auto image, std::move(*entry.requested).take());
  entry.requested.reset();
  entry.image = std::make_shared<const std::vector<std::byte>>(std::move(image));
  return {};
}

Result<std::optional<Event>> WeightStore::keep_if_whole() {
  if (!arriving_->chunks.complete())
    return std::optional<Event>();
  TEMPER_TRY(auto image, std::move(arriving_->chunks).take());
  keep({arriving_->handle, std::make_shared<const std::vector<std::byte>>(std::move(image))});
  std::optional<Event> then = std::move(arriving_->then);
  arriving_.reset();
  return then;
}

void WeightStore::keep(Entry entry) {
  Entry& kept = entries_[entry.handle.version];
  remove_file(kept);
  kept = std::move(entry);
  if (entries_.size() > (kept.handle.on_request ? actors::kImagesOnRequest : kKept))
    remove_oldest();
}

void WeightStore::remove_oldest() {
  remove_file(entries_.begin()->second);
  entries_.erase(entries_.begin());
}

/// A process that has the file open keeps it.
void WeightStore::remove_file(const Entry& entry) {
  std::error_code ignored;
  if (!entry.file.empty())
    std::filesystem::remove(entry.file, ignored);
}

const actors::WeightsHandle* WeightStore::handle(PolicyVersion version) const {
  const auto it = entries_.find(version);
  return it == entries_.end() ? nullptr : &it->second.handle;
}

std::shared_ptr<const std::vector<std::byte>> WeightStore::image(PolicyVersion version) const {
  const auto it = entries_.find(version);
  return it == entries_.end() ? nullptr : it->second.image;
}

std::vector<actors::OutgoingMessage> WeightStore::chunks(PolicyVersion version,
                                                         std::uint64_t from) {
  using actors::WeightsChunk;
  const auto it = entries_.find(version);
  if (it == entries_.end() || it->second.image == nullptr)
    return {};
  Entry& entry = it->second;
  if (entry.encoded.empty()) {
    const Status done =
        actors::for_each_chunk(version, *entry.image, [&](const WeightsChunk& chunk) -> Status {
          entry.encoded.emplace_back(encode(chunk));
          return {};
        });
    TEMPER_CHECK(done.has_value(), "nothing here fails");
  }
  std::vector<actors::OutgoingMessage> messages;
  const std::size_t first = from / static_cast<std::uint64_t>(actors::kChunk.count());
  for (std::size_t i = first; i < entry.encoded.size(); ++i) {
    const actors::Slice& body = entry.encoded[i];
    messages.push_back(
        {.tag = WeightsChunk::kTag, .version = WeightsChunk::kVersion, .body = {}, .shared = body});
  }
  return messages;
}

Status WeightStore::check(const actors::FetchWeights& what,
                          std::optional<PolicyVersion> staging) const {
  if (staging != what.version)
    return invalid_input(fmt::format("it was not told to stage version {}", what.version));
  const actors::WeightsHandle& kept = *handle(what.version);
  const auto chunk = static_cast<std::uint64_t>(actors::kChunk.count());
  if (what.checksum != kept.checksum || what.offset % chunk != 0 ||
      std::cmp_greater_equal(what.offset, kept.bytes.count()))
    return invalid_input(
        fmt::format("no chunk of version {} begins at offset {}", what.version, what.offset));
  return {};
}

Result<std::filesystem::path> WeightStore::file(PolicyVersion version,
                                                const std::filesystem::path& folder) {
  Entry& entry = entries_.at(version);
  if (!entry.file.empty())
    return entry.file;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return io_error("cannot create " + folder.string(), error.value());
  const std::filesystem::path path = folder / fmt::format("{}.safetensors", version);
  TEMPER_TRY_STATUS(write_file_atomically(
      path, {reinterpret_cast<const char*>(entry.image->data()), entry.image->size()}));
  return entry.file = path;
}

void WeightStore::clear() {
  for (const auto& [version, entry] : entries_)
    remove_file(entry);
  entries_.clear();
  arriving_.reset();
}

}  // namespace temper::orchestrator
