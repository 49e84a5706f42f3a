// Waits of a device for its host: each expected time is derived beside it.
#include "sim_hw/parallel/host_dispatch.hpp"

#include <gtest/gtest.h>

namespace temper::sim_hw {
namespace {

/// A layer whose kernels last far longer than a launch.
DispatchedLayer long_kernels() {
  const PassKernels pass{.vector = 1,
                         .projections = 1,
                         .attention = 1,
                         .shared = 1,
                         .routed = 1,
                         .exchange = 1,
                         .other = 0};
  return {pass, {}, pass, true};
}
constexpr HostTimes kHost{.launch = 30e-6, .copy = 10e-6, .kernel_latency = 2e-6};

double wait_of(const DispatchedLayer& layer, HostDispatch dispatch, SplitCounts counts) {
  return host_wait(layer, kHost, dispatch, counts);
}

TEST(HostDispatch, AWaitForSizesCostsACopyAndALaunchThatSharedExpertsHide) {
  DispatchedLayer layer = long_kernels();
  const SplitCounts once = SplitCounts::FetchedOnce;
  EXPECT_NEAR(wait_of(layer, HostDispatch::Ahead, once), 40e-6, 1e-12);
  EXPECT_NEAR(wait_of(layer, HostDispatch::Eager, once), 10e-6 + 30e-6 * kUnboundLaunch, 1e-12);
  EXPECT_NEAR(wait_of(layer, HostDispatch::Tuned, once), 0, 1e-12);
  layer.forward.shared = 15e-6;
  EXPECT_NEAR(wait_of(layer, HostDispatch::Tuned, once), 40e-6 - 15e-6, 1e-12);
  // Sizes before each exchange: nothing fills the waits before combine, forward and backward.
  layer.forward.shared = 1;
  EXPECT_NEAR(wait_of(layer, HostDispatch::Ahead, SplitCounts::FetchedEach), 4 * 40e-6, 1e-12);
  EXPECT_NEAR(wait_of(layer, HostDispatch::Tuned, SplitCounts::FetchedEach), 2 * 40e-6, 1e-12);
  EXPECT_EQ(wait_of(layer, HostDispatch::Eager, SplitCounts::Known), 0);
}

TEST(HostDispatch, KernelsShorterThanALaunchWaitForItAfterTheHostLostItsLead) {
  DispatchedLayer layer = long_kernels();
  // 63 kernels: 12 elementwise, 4 products, attention, other communication, 20 that choose experts,
  // dispatch, 20 that move tokens or compute, combine, 3 of shared experts.
  const PassKernels brief{.vector = 24e-6,
                          .projections = 8e-6,
                          .attention = 2e-6,
                          .shared = 6e-6,
                          .routed = 80e-6,
                          .exchange = 4e-6,
                          .other = 0};
  layer.forward = brief;
  const auto wait = [&] { return wait_of(layer, HostDispatch::Eager, SplitCounts::FetchedOnce); };
  const double launch = 30e-6 * kUnboundLaunch;
  // From one wait for sizes to the next: 63 launches, the last kernel (2 us), and the copy.
  EXPECT_NEAR(wait(), 63 * launch + 2e-6 + 10e-6 - brief.total(), 1e-9);
  // A long dispatch right after the wait gives the host its lead back, and the stall is left.
  layer.forward.exchange = 2 * 63 * launch;
  EXPECT_NEAR(wait(), 10e-6 + launch, 1e-9);
}

}  // namespace
}  // namespace temper::sim_hw
