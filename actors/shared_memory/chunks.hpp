// Weights over tcp: an image as a sequence of checksummed pieces, in any order and repeated at
// will.
#pragma once

#include "actors/protocol/weights.hpp"
#include "core/result.hpp"

#include <functional>
#include <span>
#include <vector>

namespace temper::actors {

/// Every chunk but the last has this size; larger messages are slower per byte.
inline constexpr Bytes kChunk{1 << 20};
/// Largest image a receiver takes memory for.
inline constexpr Bytes kLargestImage{std::int64_t{64} << 30};

/// What announces `image` to a receiver of chunks (no shared memory: fd < 0).
WeightsHandle chunked_handle(PolicyVersion version, std::span<const std::byte> image);

/// Calls `send` with each chunk of `image`, in order; stops at the first error and returns it.
Status for_each_chunk(PolicyVersion version,
                      std::span<const std::byte> image,
                      const std::function<Status(WeightsChunk)>& send);

/// Puts an image together. Memory is taken at the announcement, never beyond `limit`.
class ChunkAssembler {
 public:
  /// Error: OutOfMemory, more than `limit` is announced.
  static Result<ChunkAssembler> start(const WeightsHandle& announced, Bytes limit);

  /// A chunk seen before changes nothing. Errors, after which the assembly is as before: a foreign
  /// version, an offset or size that is not of this image, a checksum that differs.
  Status add(const WeightsChunk& chunk);
  bool complete() const { return missing_ == 0; }
  /// As far as it is here; what is missing is zero.
  std::span<const std::byte> image() const { return image_; }
  /// The verified image. Errors: missing chunks, named; a checksum of the whole that differs.
  Result<std::vector<std::byte>> take() &&;

 private:
  explicit ChunkAssembler(const WeightsHandle& announced);
  std::size_t size_of(std::size_t index) const;

  WeightsHandle announced_;
  std::vector<std::byte> image_;
  std::vector<bool> present_;
  std::size_t missing_ = 0;
};

}  // namespace temper::actors
