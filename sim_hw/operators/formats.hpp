// Number formats of weights, activations and cached keys and values.
//
// A product runs at the 8-bit peak if both of its operands have 8 bits and the hardware computes
// with them; otherwise its weights are unpacked on chip and it runs at the BF16 peak. Quantizing
// activations is a kernel that reads 2 bytes per element and writes one. Scales, in bytes per
// element: one FP32 per tensor or channel counts as none; per block of 128 (FP8 block scaling), 4 /
// 128; per 32 elements (MXFP8, OCP Microscaling 1.0), 1 / 32; per group of 128 of 4-bit weights,
// 2 / 128. Values only.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

/// Of the weights and activations of matrix products.
enum class WeightFormat { Bf16, Fp16, Fp8, Fp8Block, Mxfp8, Int8, W4a16, W4a8 };
/// Of cached keys and values.
enum class CacheFormat { Bf16, Fp8, Int8 };

/// Of an inference engine.
struct EngineFormats {
  WeightFormat weights = WeightFormat::Bf16;  ///< Of projections, MLPs and experts.
  CacheFormat cache = CacheFormat::Bf16;
  bool experts_only = false;  ///< Whether only routed experts have the format.
};

struct MatrixFormat {
  double weight_bytes = 2;      ///< Per weight, scales included.
  double activation_bytes = 2;  ///< Per activation that a product reads.
  double speed = 1;             ///< Matrix peak over that of BF16.
  bool converts = false;        ///< Whether a kernel quantizes the activations.
};

/// Bytes that quantizing moves per element, besides a launch.
inline constexpr double kConvertBytes = 3;

inline MatrixFormat matrix_format(WeightFormat format, const DieSpec& die) {
  const bool eight = format == WeightFormat::Int8 || format == WeightFormat::W4a8 || die.fp8;
  const double low = eight && die.low ? die.low->count() / die.bf16.count() : 1;
  switch (format) {
    case WeightFormat::Bf16:
      break;
    case WeightFormat::Fp16:
      return {2, 2, die.fp16 ? die.fp16->count() / die.bf16.count() : 1, false};
    case WeightFormat::Fp8:
    case WeightFormat::Int8:
      return low > 1 ? MatrixFormat{1, 1, low, true} : MatrixFormat{1, 2, 1, false};
    case WeightFormat::Fp8Block:
      return low > 1 ? MatrixFormat{1 + 4.0 / (128 * 128), 1 + 4.0 / 128, low, true}
                     : MatrixFormat{1 + 4.0 / (128 * 128), 2, 1, false};
    case WeightFormat::Mxfp8:
      return low > 1 ? MatrixFormat{1 + 1.0 / 32, 1 + 1.0 / 32, low, true}
                     : MatrixFormat{1 + 1.0 / 32, 2, 1, false};
    case WeightFormat::W4a16:
      return {0.5 + 2.0 / 128, 2, 1, false};
    case WeightFormat::W4a8:
      return low > 1 ? MatrixFormat{0.5 + 2.0 / 128, 1, low, true}
                     : MatrixFormat{0.5 + 2.0 / 128, 2, 1, false};
  }
  return {};
}

inline double cache_bytes(CacheFormat format) {
  return format == CacheFormat::Bf16 ? 2 : 1;
}

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::WeightFormat> {
  using E = temper::sim_hw::WeightFormat;
  static constexpr std::array<std::pair<E, std::string_view>, 8> value{{{E::Bf16, "bf16"},
                                                                        {E::Fp16, "fp16"},
                                                                        {E::Fp8, "fp8"},
                                                                        {E::Fp8Block, "fp8_block"},
                                                                        {E::Mxfp8, "mxfp8"},
                                                                        {E::Int8, "int8"},
                                                                        {E::W4a16, "w4a16"},
                                                                        {E::W4a8, "w4a8"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::CacheFormat> {
  using E = temper::sim_hw::CacheFormat;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Bf16, "bf16"}, {E::Fp8, "fp8"}, {E::Int8, "int8"}}};
};
