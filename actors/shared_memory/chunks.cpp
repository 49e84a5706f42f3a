#include "actors/shared_memory/chunks.hpp"

#include "core/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace temper::actors {
namespace {

constexpr auto kChunkSize = static_cast<std::size_t>(kChunk.count());
constexpr std::size_t kNamedAtMost = 8;

std::size_t chunk_count(std::size_t bytes) {
  return (bytes + kChunkSize - 1) / kChunkSize;
}

}  // namespace

WeightsHandle chunked_handle(PolicyVersion version, std::span<const std::byte> image) {
  return {.version = version,
          .bytes = Bytes(static_cast<Bytes::rep>(image.size())),
          .checksum = hash64(image),
          .pid = 0,
          .fd = -1};
}

Status for_each_chunk(PolicyVersion version,
                      std::span<const std::byte> image,
                      const std::function<Status(WeightsChunk)>& send) {
  for (std::size_t offset = 0; offset < image.size(); offset += kChunkSize) {
    const auto piece = image.subspan(offset, std::min(kChunkSize, image.size() - offset));
    TEMPER_TRY_STATUS(send({.version = version,
                            .offset = offset,
                            .checksum = hash64(piece),
                            .data = {piece.begin(), piece.end()}}));
  }
  return {};
}

ChunkAssembler::ChunkAssembler(const WeightsHandle& announced)
    : announced_(announced),
      image_(static_cast<std::size_t>(announced.bytes.count())),
      present_(chunk_count(image_.size())),
      missing_(present_.size()) {}

Status ChunkAssembler::check(const WeightsHandle& announced, Bytes limit) {
  if (announced.bytes < Bytes(0) || announced.bytes > limit) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("weights of version {}: expected at most {} bytes, found {} announced",
                             announced.version,
                             limit.count(),
                             announced.bytes.count())};
  }
  return {};
}

Result<ChunkAssembler> ChunkAssembler::start(const WeightsHandle& announced, Bytes limit) {
  TEMPER_TRY_STATUS(check(announced, limit));
  return ChunkAssembler(announced);
}

std::size_t ChunkAssembler::size_of(std::size_t index) const {
  return std::min(kChunkSize, image_.size() - index * kChunkSize);
}

Status ChunkAssembler::add(const WeightsChunk& chunk) {
  const std::string name =
      fmt::format("chunk at offset {} of weights version {}", chunk.offset, chunk.version);
  if (chunk.version != announced_.version)
    return invalid_input(fmt::format("{}: expected version {}", name, announced_.version));
  if (chunk.offset % kChunkSize != 0 || chunk.offset >= image_.size()) {
    return invalid_input(
        fmt::format("{}: not a chunk boundary of an image of {} bytes", name, image_.size()));
  }
  const std::size_t index = chunk.offset / kChunkSize;
  if (chunk.data.size() != size_of(index)) {
    return invalid_input(
        fmt::format("{}: expected {} bytes, found {}", name, size_of(index), chunk.data.size()));
  }
  if (hash64(chunk.data) != chunk.checksum)
    return corrupt(name + ": the checksum does not match");
  if (!present_[index]) {
    std::memcpy(image_.data() + chunk.offset, chunk.data.data(), chunk.data.size());
    present_[index] = true;
    --missing_;
  } else if (std::memcmp(image_.data() + chunk.offset, chunk.data.data(), chunk.data.size()) != 0) {
    return corrupt(name + ": differs from an earlier copy of this chunk");
  }
  return {};
}

Result<std::vector<std::byte>> ChunkAssembler::take() && {
  if (missing_ > 0) {
    std::string offsets;
    std::size_t named = 0;
    for (std::size_t i = 0; i < present_.size() && named < kNamedAtMost; ++i) {
      if (!present_[i]) {
        offsets += fmt::format("{}{}", offsets.empty() ? "" : ", ", i * kChunkSize);
        ++named;
      }
    }
    return Error{ErrorCode::Unavailable,
                 fmt::format("weights of version {}: {} of {} chunks are missing, at offset {}{}",
                             announced_.version,
                             missing_,
                             present_.size(),
                             offsets,
                             missing_ > named ? ", ..." : "")};
  }
  if (hash64(image_) != announced_.checksum) {
    return corrupt(fmt::format("weights of version {}: the checksum of the image does not match",
                               announced_.version));
  }
  return std::move(image_);
}

}  // namespace temper::actors
