// Weights over tcp: an image as checksummed chunks, which may arrive in any order and repeatedly.
#pragma once

#include "actors/protocol/weights.hpp"
#include "core/result.hpp"

#include <functional>
#include <span>
#include <vector>

namespace temper::actors {

/// Every chunk but the last has this size; larger messages are slower per byte.
inline constexpr Bytes kChunk{1 << 20};
/// Largest image for which a receiver allocates memory.
inline constexpr Bytes kLargestImage{std::int64_t{64} << 30};

/// The handle that announces `image` to a receiver of chunks (no shared memory: fd < 0).
WeightsHandle chunked_handle(PolicyVersion version, std::span<const std::byte> image);

/// Calls `send` with each chunk of `image`, in order; stops at the first error and returns it.
Status for_each_chunk(PolicyVersion version,
                      std::span<const std::byte> image,
                      const std::function<Status(WeightsChunk)>& send);

/// Reassembles an image. Memory is allocated at the announcement, never more than `limit`.
class ChunkAssembler {
 public:
  /// Error: OutOfMemory if more than `limit` is announced.
  static Status check(const WeightsHandle& announced, Bytes limit);
  /// Error: see check().
  static Result<ChunkAssembler> start(const WeightsHandle& announced, Bytes limit);

  /// Adds a chunk; a repeated chunk has no effect. Errors, which leave the assembler unchanged:
  /// InvalidInput for another version, offset or size; Corrupt for a checksum that does not match.
  Status add(const WeightsChunk& chunk);
  bool complete() const { return missing_ == 0; }
  /// The image so far; missing bytes are zero.
  std::span<const std::byte> image() const { return image_; }
  /// The verified image. Errors: Unavailable if chunks are missing (named); Corrupt if the checksum
  /// of the image does not match.
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
