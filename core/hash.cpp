#include "core/hash.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace temper {

namespace {

Hash128 from(const XXH128_hash_t& hash) {
  return {hash.high64, hash.low64};
}

}  // namespace

std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

Hash128 hash128(std::string_view text) {
  return from(XXH3_128bits(text.data(), text.size()));
}

std::string to_text(const Hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

struct Hasher64::State {
  XXH3_state_t xxh;
};

Hasher64::Hasher64() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh);
}
Hasher64::~Hasher64() = default;
Hasher64::Hasher64(Hasher64&&) noexcept = default;
Hasher64& Hasher64::operator=(Hasher64&&) noexcept = default;

void Hasher64::add(std::span<const std::byte> piece) {
  XXH3_64bits_update(&state_->xxh, piece.data(), piece.size());
}

std::uint64_t Hasher64::digest() const {
  return XXH3_64bits_digest(&state_->xxh);
}

struct Hasher128::State {
  XXH3_state_t xxh;
};

Hasher128::Hasher128() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}
Hasher128::~Hasher128() = default;

void Hasher128::add(std::string_view piece) {
  XXH3_128bits_update(&state_->xxh, piece.data(), piece.size());
}

Hash128 Hasher128::digest() const {
  return from(XXH3_128bits_digest(&state_->xxh));
}

}  // namespace temper
