// An inference engine that serves requests: decode steps that may verify drafts, and prefills that
// share the devices with them.
//
//   step      a decode step of every replica over 1 + depth tokens per sequence, and the drafts
//   draft     depth passes of one layer and the head: the model's own kind of layer (MTP), or a
//   dense
//             one (EAGLE); none for n-gram look-up
//   tokens    accepted per sequence and step: 1 + p + p^2 + ... + p^depth for an acceptance p of
//             each draft given that the ones before it were accepted
//   cycle     every sequence of a replica is prefilled once and decodes `output` tokens:
//             cycle = n prefill + (output / tokens) step,  throughput = n output / cycle
// A prefill of its own engines (`prefill_beside`) leaves the cycle.
//
// Assumed: experts equally loaded, requests of equal length, no time of the engine's host, weights
// of the draft layer in memory with the model's. Exchanges in BF16, dispatch in the format of the
// experts' activations. Sources of constants: configs/hardware and configs/calibration.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

enum class Draft { None, Mtp, Eagle, Ngram };

struct EngineFormats {
  WeightFormat weights = WeightFormat::Bf16;  ///< Of projections, MLPs and experts.
  CacheFormat cache = CacheFormat::Bf16;
  bool experts_only = false;  ///< Whether only routed experts have the format.
};

struct ServingPlan {
  RolloutLayout layout;
  EngineFormats formats;
  Draft draft = Draft::None;
  double depth = 0;             ///< Drafts that a step verifies.
  double tokens_per_step = 1;   ///< Accepted tokens of a sequence, its own included.
  bool prefill_beside = false;  ///< Other devices prefill.
};

struct ServingWork {
  double batch = 1;    ///< Running sequences of a replica.
  double input = 1;    ///< Prompt tokens that are computed (not cached).
  double output = 1;   ///< Tokens of a response.
  double context = 1;  ///< Cached tokens per sequence, on average over the decode steps.
};

struct ServingCost {
  double step = 0;     ///< Seconds of a decode step, drafts included.
  double draft = 0;    ///< Part of it.
  double prefill = 0;  ///< Seconds of one request's prefill on its replica.
  double cycle = 0;    ///< Seconds of n requests on a replica, prefill and decode.
};

/// 1 + p + ... + p^depth.
double accepted_tokens(double acceptance, double depth);

Device serving_device(const HardwareSpec& hardware, const EngineFormats& formats);

/// Requires: the layout fits its devices.
ServingCost serving_cost(const ModelSpec& model,
                         const HardwareSpec& hardware,
                         const ServingPlan& plan,
                         const ServingWork& work);

/// Sequences of a replica whose `tokens` cached tokens each fit 90 % of the device memory beside
/// the weights (the share that engines leave to the cache by default), at most `limit`; 0 if none
/// fits.
double fitting_sequences(const ModelSpec& model,
                         const HardwareSpec& hardware,
                         const ServingPlan& plan,
                         double tokens,
                         double limit);

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Draft> {
  using E = temper::sim_hw::Draft;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::None, "none"}, {E::Mtp, "mtp"}, {E::Eagle, "eagle"}, {E::Ngram, "ngram"}}};
};
