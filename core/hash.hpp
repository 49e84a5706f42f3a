// XXH3 checksums: they detect accidental damage, not attacks. 64 bits for weights in transit,
// frames of events.log and the log hash of a run; 128 bits for files that are kept
// (core/manifest.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace temper {

std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed = 0);
inline std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0) {
  return hash64(std::as_bytes(std::span(text)), seed);
}

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
};
Hash128 hash128(std::string_view text);
/// 32 hexadecimal digits.
std::string to_text(const Hash128& hash);

/// Computes hash64() incrementally.
class Hasher64 {
 public:
  Hasher64();
  ~Hasher64();
  Hasher64(Hasher64&&) noexcept;
  Hasher64& operator=(Hasher64&&) noexcept;
  void add(std::span<const std::byte> piece);
  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Computes hash128() incrementally.
class Hasher128 {
 public:
  Hasher128();
  ~Hasher128();
  Hasher128(const Hasher128&) = delete;
  Hasher128& operator=(const Hasher128&) = delete;
  void add(std::string_view piece);
  Hash128 digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace temper
