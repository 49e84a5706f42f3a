// An inference engine that serves requests: decode steps that may verify drafts, and prefills that
// share the devices with them.
//
//   step      of every replica, and its accepted tokens: sim_hw/steps/drafts.hpp
//   cycle     every sequence of a replica is prefilled once and decodes `output` tokens:
//             cycle = n prefill + (output / tokens) step,  throughput = n output / cycle
// A prefill of its own engines (`prefill_beside`) leaves the cycle.
//
// Assumed: experts equally loaded, requests of equal length, no time of the engine's host, weights
// of the draft layer in memory with the model's, exchanges in BF16. Sources of constants:
// configs/hardware and configs/calibration.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/steps/drafts.hpp"

namespace temper::sim_hw {

struct ServingPlan {
  RolloutLayout layout;
  EngineFormats formats;
  Drafts drafts;
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
