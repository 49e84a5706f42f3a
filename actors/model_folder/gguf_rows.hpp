// The order of the rows of queries and keys in GGUF files of the architecture `llama`: llama.cpp
// rotates adjacent rows of a head, while transformers rotates the first half with the second.
#pragma once

#include <cstdint>
#include <span>

namespace temper::actors {

// Both reorder the rows of each head in place. Requires: `head` is even and divides `rows`, which
// divides the number of values.

/// From [a0 a1 .. b0 b1 ..] (transformers) to [a0 b0 a1 b1 ..] (llama.cpp).
void pair_halves(std::span<float> values, std::int64_t rows, std::int64_t head);
/// Back.
void part_pairs(std::span<float> values, std::int64_t rows, std::int64_t head);

}  // namespace temper::actors
