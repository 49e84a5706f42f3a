// The stored types of GGUF and their conversion to float32. A quantized block has 32 values, which
// share a scale (and in Q4_1 a minimum) of 16 bits.
#include "actors/model_folder/gguf_file.hpp"
#include "core/check.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace temper::actors {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF data is little-endian");

constexpr std::size_t kBlockValues = 32;

/// The blocks of a type.
struct BlockLayout {
  GgufType type;
  std::string_view name;
  std::int64_t values;
  std::int64_t bytes;
};

constexpr std::array<BlockLayout, 6> kLayouts{{{GgufType::Float32, "F32", 1, 4},
                                               {GgufType::Float16, "F16", 1, 2},
                                               {GgufType::Bfloat16, "BF16", 1, 2},
                                               {GgufType::Q4_0, "Q4_0", kBlockValues, 18},
                                               {GgufType::Q4_1, "Q4_1", kBlockValues, 20},
                                               {GgufType::Q8_0, "Q8_0", kBlockValues, 34}}};

const BlockLayout& layout_of(GgufType type) {
  const auto found = std::ranges::find(kLayouts, type, &BlockLayout::type);
  TEMPER_CHECK(found != kLayouts.end(), "every type has a layout");
  return *found;
}

std::uint16_t half_at(const std::byte* bytes) {
  std::uint16_t half = 0;
  std::memcpy(&half, bytes, sizeof half);
  return half;
}

/// IEEE 754 binary16.
float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU, fraction = half & 0x3ffU;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent == 0) {  // Zero or subnormal: fraction * 2^-24.
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// Byte i of 16 has value i of the block in its low half and value i + 16 in its high half.
void unpack_nibbles(const std::byte* from, std::span<float> to, float scale, float offset) {
  for (std::size_t i = 0; i < kBlockValues / 2; ++i) {
    const auto pair = std::to_integer<unsigned>(from[i]);
    to[i] = static_cast<float>(pair & 15U) * scale + offset;
    to[i + kBlockValues / 2] = static_cast<float>(pair >> 4) * scale + offset;
  }
}

void dequantize_block(GgufType type, const std::byte* from, std::span<float> to) {
  const float scale = from_half(half_at(from));
  switch (type) {
    case GgufType::Q4_0:
      return unpack_nibbles(from + 2, to, scale, -8 * scale);
    case GgufType::Q4_1:
      return unpack_nibbles(from + 4, to, scale, from_half(half_at(from + 2)));
    default:
      break;
  }
  for (std::size_t i = 0; i < kBlockValues; ++i)
    to[i] = static_cast<float>(static_cast<std::int8_t>(from[2 + i])) * scale;
}

}  // namespace

std::string_view name_of(GgufType type) {
  return layout_of(type).name;
}

std::int64_t block_of(GgufType type) {
  return layout_of(type).values;
}

std::int64_t block_bytes_of(GgufType type) {
  return layout_of(type).bytes;
}

void dequantize(GgufType type, std::span<const std::byte> bytes, std::span<float> values) {
  const auto block = static_cast<std::size_t>(block_of(type));
  const auto width = static_cast<std::size_t>(block_bytes_of(type));
  TEMPER_CHECK(values.size() % block == 0 && bytes.size() == values.size() / block * width,
               "the number of values does not match the bytes");
  if (type == GgufType::Float32) {
    if (!values.empty())
      std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < values.size() / block; ++i) {
    const std::byte* const from = bytes.data() + i * width;
    if (type == GgufType::Float16)
      values[i] = from_half(half_at(from));
    else if (type == GgufType::Bfloat16)
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half_at(from)) << 16);
    else
      dequantize_block(type, from, values.subspan(i * block, block));
  }
}

}  // namespace temper::actors
