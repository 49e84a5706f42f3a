#include "sim_hw/parallel/host_dispatch.hpp"

#include "sim_hw/steps/steps.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace temper::sim_hw {
namespace {

/// Equal kernels that follow each other.
struct Kernels {
  double count = 0;
  double seconds = 0;  ///< Of all.
  enum class Sizes { None, Sent, Needed } sizes = Sizes::None;
};

/// The kernels of one direction of a layer, in the order of their launches.
class KernelList {
 public:
  void add(double count, double seconds, Kernels::Sizes sizes = Kernels::Sizes::None) {
    kernels_[size_++] = {count, seconds, sizes};
    fetches_ += sizes == Kernels::Sizes::Needed ? 1 : 0;
  }
  std::span<const Kernels> kernels() const { return {kernels_.data(), size_}; }
  int fetches() const { return fetches_; }
  double launches() const {
    double count = 0;
    for (const Kernels& k : kernels())
      count += k.count;
    return count;
  }
  double seconds() const {
    double sum = 0;
    for (const Kernels& k : kernels())
      sum += k.seconds;
    return sum;
  }

 private:
  std::array<Kernels, 24> kernels_{};
  std::size_t size_ = 0;
  int fetches_ = 0;
};

/// A host and its device while they work through passes.
struct Queue {
  double host = 0;    ///< The host is free.
  double device = 0;  ///< The device has no more work.
  double sizes = 0;   ///< Sizes arrive.

  void run(const KernelList& list, double launch, double copy) {
    for (const Kernels& k : list.kernels()) {
      if (k.sizes == Kernels::Sizes::Needed)
        host = std::max(host, sizes);
      const double first = host + launch + k.seconds;
      const double last = host + k.count * launch + k.seconds / k.count;
      device = std::max({device + k.seconds, first, last});
      host += k.count * launch;
      if (k.sizes == Kernels::Sizes::Sent)
        sizes = device + copy;
    }
  }
};

/// How often the host fetches sizes in one direction of a layer: before dispatch, before combine.
struct Fetches {
  bool dispatch = false;
  bool combine = false;
};

constexpr double kSharedKernels = 3;   // Two products and an activation.
constexpr double kProductKernels = 4;  // Two around attention, two of an MLP.

/// Kernels of one direction of a layer.
struct Counts {
  double all = 0;       ///< Without routing.
  double products = 0;  ///< Of them.
  double routing = 0;
};

/// Everything but routing and shared experts.
void add_attention(KernelList& list, const PassKernels& p, const Counts& counts, bool experts) {
  const double vector = counts.all - counts.products - 1 - (experts ? kSharedKernels : 0);
  list.add(vector / 2, p.vector / 2);
  list.add(counts.products, p.projections);
  list.add(1, p.attention);
  list.add(1, p.other);
  list.add(vector / 2, p.vector / 2);
}

/// Router, exchanges and experts. Shared experts follow, or fill the first wait for sizes.
void add_experts(KernelList& list,
                 const PassKernels& p,
                 const Counts& counts,
                 double shortest,
                 Fetches f,
                 bool shared_first) {
  using enum Kernels::Sizes;
  const double half = counts.routing / 2;
  const double choice = std::min(half * shortest, p.routed / 2);
  list.add(half, choice, f.dispatch ? Sent : None);
  if (shared_first)
    list.add(kSharedKernels, p.shared);
  list.add(1, p.exchange / 2, f.dispatch ? Needed : None);
  list.add(half, p.routed - choice, f.combine ? Sent : None);
  list.add(1, p.exchange / 2, f.combine ? Needed : None);
  if (!shared_first)
    list.add(kSharedKernels, p.shared);
}

/// Seconds beyond the device's own in a pass between two of its kind.
double steady_wait(const KernelList& list, double launch, double copy) {
  Queue queue;
  queue.run(list, launch, copy);
  const double begin = queue.device;
  queue.run(list, launch, copy);
  return std::max(0.0, queue.device - begin - list.seconds());
}

}  // namespace

double host_wait(const DispatchedLayer& layer,
                 const HostTimes& host,
                 HostDispatch dispatch,
                 SplitCounts counts) {
  const bool full = layer.recompute.total() > 0;
  constexpr Counts kForward{kForwardKernels, kProductKernels, kRoutingKernels};
  constexpr Counts kAgain{kRecomputeKernels, kProductKernels, kRoutingKernels};
  constexpr Counts kBackward{kBackwardKernels, 2 * kProductKernels, 2 * kRoutingKernels};
  const bool each = counts == SplitCounts::FetchedEach;
  const Fetches first{layer.experts && counts != SplitCounts::Known, layer.experts && each};
  const Fetches later{layer.experts && each, layer.experts && each};
  if (dispatch == HostDispatch::Ahead) {
    const int fetches = int{first.dispatch} + int{first.combine} +
                        (full ? 2 : 1) * (int{later.dispatch} + int{later.combine});
    return fetches * (host.copy + host.launch);
  }
  const bool tuned = dispatch == HostDispatch::Tuned;
  const double launch = host.launch * (tuned ? 1 : kUnboundLaunch);
  double wait = 0;      // Of passes in which the host loses its lead.
  double launches = 0;  // Of the others.
  double seconds = 0;
  const auto count = [&](const PassKernels& p, const Counts& kernels, Fetches f, bool backward) {
    KernelList list;
    if (!backward)
      add_attention(list, p, kernels, layer.experts);
    if (layer.experts)
      add_experts(list, p, kernels, host.kernel_latency, f, tuned);
    if (backward)
      add_attention(list, p, kernels, layer.experts);
    if (list.fetches() > 0) {
      wait += steady_wait(list, launch, host.copy);
      return;
    }
    launches += list.launches() * launch;
    seconds += list.seconds();
  };
  count(layer.forward, kForward, first, false);
  if (full)
    count(layer.recompute, kAgain, later, false);
  count(layer.backward, kBackward, later, true);
  return wait + std::max(0.0, launches - seconds);
}

}  // namespace temper::sim_hw
