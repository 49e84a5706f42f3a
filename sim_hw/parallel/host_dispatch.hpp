// Waits of a device for the host that launches its kernels, in one layer of a training step.
//
// The host launches kernels in their order, one per `launch` seconds, ahead of the device. A kernel
// starts when it is launched and the one before it has ended, so n equal kernels of s seconds each,
// launched from h on, behind a device that is busy until d, end at
//   max(d + n s, h + launch + n s, h + n launch + s)
// The second term is a device that has run out of work; the third, kernels shorter than a launch.
// Where the host needs sizes (of an uneven all-to-all), it waits until the kernels before have
// ended and their copy has arrived, and loses its lead.
//   eager  cores are not bound: a launch takes kUnboundLaunch times as long. The host waits for
//          sizes at once.
//   tuned  cores are bound. What does not depend on sizes (the shared experts) is launched before
//          the host waits, so that the device works meanwhile.
//   ahead  launches take no time; the device still waits for sizes, a copy and a launch each.
// Without a wait for sizes, the lead passes from layer to layer, and what counts is the sum of
// launches over the sum of kernels, forward and backward together.
//
// Kernels of a layer: counts of eager PyTorch (sim_hw/steps/steps.hpp). Assumed: half of the
// routing kernels (scores, choice, counts) come before the sizes, and take kernel_latency each; the
// other half moves tokens. Other kernels of a part are equal. Communication is three kernels more:
// dispatch, combine, and the rest.
// Constants: kUnboundLaunch. Range: one stream; no other process disturbs the host.
#pragma once

#include "sim_hw/layout/mechanisms.hpp"

namespace temper::sim_hw {

/// Decode forward pass of Qwen3-235B on Ascend A3 without and with bound cores, collection of
/// garbage off: 135.19 and 124.66 ms (published rows SD082, SD083, cann-recipes-train). A lower
/// bound of the ratio of launches, because the time of the device is part of both.
inline constexpr double kUnboundLaunch = 135.19 / 124.66;

/// Seconds of a layer's kernels on the device, by part, in one direction.
struct PassKernels {
  double vector = 0;       ///< Norms, rotary embedding, residuals.
  double projections = 0;  ///< Matrix products around attention, and the MLP of a dense layer.
  double attention = 0;
  double shared = 0;    ///< Shared experts.
  double routed = 0;    ///< Router, movement of tokens, and routed experts.
  double exchange = 0;  ///< Exposed dispatch and combine.
  double other = 0;     ///< Other exposed communication.

  double total() const {
    return vector + projections + attention + shared + routed + exchange + other;
  }
};

struct DispatchedLayer {
  PassKernels forward;
  PassKernels recompute;  ///< All 0 unless the layer is recomputed as a whole.
  PassKernels backward;   ///< Without `recompute`.
  bool experts = false;   ///< Has routed experts.
};

/// Host times of a device.
struct HostTimes {
  double launch = 0;          ///< Of one kernel, with bound cores.
  double copy = 0;            ///< Of sizes to the host.
  double kernel_latency = 0;  ///< Shortest kernel.
};

/// Seconds that the device waits for the host in a layer, forward and backward.
double host_wait(const DispatchedLayer& layer,
                 const HostTimes& host,
                 HostDispatch dispatch,
                 SplitCounts counts);

}  // namespace temper::sim_hw
