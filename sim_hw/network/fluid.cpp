#include "sim_hw/network/fluid.hpp"

#include "core/check.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace temper::sim_hw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// splitmix64.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return mix(a ^ mix(b));
}
std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

/// The class of each element, numbered in order of first appearance.
struct Classes {
  std::vector<std::uint32_t> of;
  std::vector<std::uint32_t> first;  ///< One element of each class.
  std::vector<std::uint32_t> size;

  explicit Classes(const std::vector<std::uint64_t>& colors) : of(colors.size()) {
    std::unordered_map<std::uint64_t, std::uint32_t> seen;
    for (std::size_t i = 0; i < colors.size(); ++i) {
      const auto [entry, is_new] =
          seen.try_emplace(colors[i], static_cast<std::uint32_t>(first.size()));
      if (is_new) {
        first.push_back(static_cast<std::uint32_t>(i));
        size.push_back(0);
      }
      of[i] = entry->second;
      ++size[entry->second];
    }
  }
};

std::size_t count_distinct(const std::vector<std::uint64_t>& colors) {
  std::unordered_map<std::uint64_t, char> seen;
  for (const std::uint64_t color : colors)
    seen.try_emplace(color);
  return seen.size();
}

struct Colors {
  std::vector<std::uint64_t> flows;
  std::vector<std::uint64_t> links;
};

/// The coarsest coloring in which equal flows use equal links equally often, and vice versa.
Colors refine(const FluidNetwork& network, const FlowSet& flows, const std::vector<double>& begin) {
  Colors colors{std::vector<std::uint64_t>(flows.size()),
                std::vector<std::uint64_t>(network.links())};
  for (std::size_t f = 0; f < flows.size(); ++f)
    colors.flows[f] = mix(mix(bits(flows.bytes(f)), bits(begin[f])), bits(flows.weight(f)));
  for (LinkId l = 0; l < network.links(); ++l)
    colors.links[l] = mix(bits(network.bandwidth(l)));
  std::size_t before = 0;
  std::vector<std::uint64_t> sums(network.links());
  while (true) {
    std::fill(sums.begin(), sums.end(), 0);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::uint64_t seen = mix(colors.flows[f]);
      for (const LinkId l : flows.route(f))
        sums[l] += seen;  // Commutative, so the order of flows does not matter.
    }
    for (LinkId l = 0; l < network.links(); ++l)
      colors.links[l] = mix(colors.links[l], sums[l]);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      std::uint64_t sum = 0;
      for (const LinkId l : flows.route(f))
        sum += mix(colors.links[l]);
      colors.flows[f] = mix(colors.flows[f], sum);
    }
    const std::size_t now = count_distinct(colors.flows) + count_distinct(colors.links);
    if (now == before)
      return colors;
    before = now;
  }
}

/// One flow of each class over one link of each class. `count`: flows of the class on one such
/// link.
class Quotient {
 public:
  struct Use {
    std::uint32_t other = 0;  ///< Link of a flow, or flow of a link.
    double count = 0;
  };

  Quotient(const FluidNetwork& network,
           const FlowSet& flows,
           const Classes& flow_classes,
           const Classes& link_classes)
      : links_of_(flow_classes.first.size()),
        flows_of_(link_classes.first.size()),
        bandwidth_(link_classes.first.size()) {
    for (std::uint32_t l = 0; l < bandwidth_.size(); ++l)
      bandwidth_[l] = network.bandwidth(link_classes.first[l]);
    for (std::uint32_t f = 0; f < links_of_.size(); ++f) {
      weight_.push_back(flows.weight(flow_classes.first[f]));
      std::vector<Use>& uses = links_of_[f];
      for (const LinkId link : flows.route(flow_classes.first[f])) {
        const std::uint32_t l = link_classes.of[link];
        const double count = static_cast<double>(flow_classes.size[f]) / link_classes.size[l];
        const auto same =
            std::find_if(uses.begin(), uses.end(), [l](const Use& use) { return use.other == l; });
        if (same == uses.end())
          uses.push_back({l, count});
        else
          same->count += count;
      }
      for (const Use& use : uses)
        flows_of_[use.other].push_back({f, use.count});
    }
    left_.resize(bandwidth_.size());
    load_.resize(bandwidth_.size());
    users_.resize(bandwidth_.size());
  }

  /// Max-min fair rates of the `active` flows; 0 for the others.
  void fill(const std::vector<char>& active, std::vector<double>& rates) {
    open_ = active;
    left_ = bandwidth_;
    std::fill(load_.begin(), load_.end(), 0);
    std::fill(users_.begin(), users_.end(), 0);
    for (std::size_t f = 0; f < links_of_.size(); ++f) {
      rates[f] = open_[f] == 0 ? 0 : kNever;  // A flow without links finishes at once.
      if (open_[f] != 0) {
        for (const Use& use : links_of_[f]) {
          load_[use.other] += use.count * weight_[f];
          ++users_[use.other];
        }
      }
    }
    while (true) {
      std::size_t narrow = bandwidth_.size();
      double share = kNever;
      for (std::size_t l = 0; l < bandwidth_.size(); ++l) {
        if (users_[l] > 0 && left_[l] < share * load_[l]) {
          share = left_[l] / load_[l];
          narrow = l;
        }
      }
      if (narrow == bandwidth_.size())
        return;
      for (const Use& flow : flows_of_[narrow])
        fix(flow.other, share, rates);
    }
  }

 private:
  void fix(std::uint32_t flow, double share, std::vector<double>& rates) {
    if (open_[flow] == 0)
      return;
    open_[flow] = 0;
    rates[flow] = share * weight_[flow];
    for (const Use& use : links_of_[flow]) {
      left_[use.other] = std::max(0.0, left_[use.other] - use.count * rates[flow]);
      load_[use.other] -= use.count * weight_[flow];
      --users_[use.other];
    }
  }

  std::vector<std::vector<Use>> links_of_;
  std::vector<std::vector<Use>> flows_of_;
  std::vector<double> bandwidth_;
  std::vector<double> weight_;  ///< By flow.
  // State of the filling in progress.
  std::vector<double> left_;
  std::vector<double> load_;          ///< Total weight of the open flows.
  std::vector<std::uint32_t> users_;  ///< Number of classes of open flows.
  std::vector<char> open_;
};

/// Simulates from the first start to the last end, class by class.
class Timeline {
 public:
  Timeline(Quotient& quotient, std::vector<double> begin, std::vector<double> bytes)
      : quotient_(quotient),
        begin_(std::move(begin)),
        bytes_(std::move(bytes)),
        left_(bytes_),
        order_(begin_.size()),
        active_(begin_.size(), 0),
        rates_(begin_.size(), 0),
        ends_(begin_.size(), 0) {
    std::iota(order_.begin(), order_.end(), 0U);
    std::stable_sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return begin_[a] < begin_[b];
    });
  }

  std::vector<double> run() {
    double now = 0;
    std::size_t next = 0;
    std::size_t running = 0;
    while (next < order_.size() || running > 0) {
      if (running == 0)
        now = begin_[order_[next]];
      for (; next < order_.size() && begin_[order_[next]] <= now; ++next, ++running)
        active_[order_[next]] = 1;
      quotient_.fill(active_, rates_);
      ++events_;
      double step = next < order_.size() ? begin_[order_[next]] - now : kNever;
      for (std::size_t f = 0; f < left_.size(); ++f) {
        if (active_[f] != 0)
          step = std::min(step, time_left(f));
      }
      TEMPER_CHECK(step < kNever, "every flow has an end");
      const bool starts = next < order_.size() && now + step >= begin_[order_[next]];
      now = starts ? begin_[order_[next]] : now + step;
      running -= advance(now, step);
    }
    return std::move(ends_);
  }
  std::size_t events() const { return events_; }

 private:
  /// Two flows that end within this share of a step end together.
  static constexpr double kTogether = 1e-9;

  double time_left(std::size_t f) const {
    return left_[f] <= 0 || rates_[f] == kNever ? 0 : left_[f] / rates_[f];
  }

  /// Number of flows that ended.
  std::size_t advance(double now, double step) {
    std::size_t ended = 0;
    for (std::size_t f = 0; f < left_.size(); ++f) {
      if (active_[f] == 0)
        continue;
      if (time_left(f) <= step * (1 + kTogether)) {
        active_[f] = 0;
        ends_[f] = now;
        ++ended;
      } else {
        left_[f] -= rates_[f] * step;
      }
    }
    return ended;
  }

  Quotient& quotient_;
  const std::vector<double> begin_;
  const std::vector<double> bytes_;
  std::vector<double> left_;
  std::vector<std::uint32_t> order_;
  std::vector<char> active_;
  std::vector<double> rates_;
  std::vector<double> ends_;
  std::size_t events_ = 0;
};

/// Times at which each flow has waited for its latencies.
std::vector<double> begins(const FluidNetwork& network, const FlowSet& flows) {
  std::vector<double> out(flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    double latency = 0;
    for (const LinkId link : flows.route(f))
      latency += network.latency(link);
    out[f] = flows.start(f) + latency;
  }
  return out;
}

template <class PerClass>
std::vector<double> to_flows(const Classes& classes, const PerClass& values) {
  std::vector<double> out(classes.of.size());
  for (std::size_t f = 0; f < out.size(); ++f)
    out[f] = values[classes.of[f]];
  return out;
}

}  // namespace

LinkId FluidNetwork::add_link(double bandwidth, double latency) {
  TEMPER_CHECK(bandwidth > 0 && latency >= 0,
               "a link has a bandwidth above 0 and a latency of 0 or more");
  bandwidth_.push_back(bandwidth);
  latency_.push_back(latency);
  return static_cast<LinkId>(bandwidth_.size() - 1);
}

void FlowSet::reserve(std::size_t flows, std::size_t links_per_flow) {
  offsets_.reserve(flows + 1);
  links_.reserve(flows * links_per_flow);
  bytes_.reserve(flows);
  start_.reserve(flows);
  weight_.reserve(flows);
}

void FlowSet::add(std::span<const LinkId> route, double bytes, double start, double weight) {
  TEMPER_CHECK(bytes >= 0 && weight > 0, "a flow has bytes of 0 or more and a weight above 0");
  links_.insert(links_.end(), route.begin(), route.end());
  offsets_.push_back(static_cast<std::uint32_t>(links_.size()));
  bytes_.push_back(bytes);
  start_.push_back(start);
  weight_.push_back(weight);
}

FluidResult simulate(const FluidNetwork& network, const FlowSet& flows) {
  std::vector<double> begin = begins(network, flows);
  const Colors colors = refine(network, flows, begin);
  const Classes flow_classes(colors.flows);
  const Classes link_classes(colors.links);
  Quotient quotient(network, flows, flow_classes, link_classes);
  std::vector<double> class_begin;
  std::vector<double> class_bytes;
  for (const std::uint32_t f : flow_classes.first) {
    class_begin.push_back(begin[f]);
    class_bytes.push_back(flows.bytes(f));
  }
  Timeline timeline(quotient, std::move(class_begin), std::move(class_bytes));
  const std::vector<double> class_ends = timeline.run();
  FluidResult out;
  out.ends = to_flows(flow_classes, class_ends);
  out.classes = flow_classes.first.size();
  out.events = timeline.events();
  for (const double end : class_ends)
    out.end = std::max(out.end, end);
  return out;
}

std::vector<double> fair_rates(const FluidNetwork& network, const FlowSet& flows) {
  const Colors colors = refine(network, flows, std::vector<double>(flows.size(), 0.0));
  const Classes flow_classes(colors.flows);
  const Classes link_classes(colors.links);
  Quotient quotient(network, flows, flow_classes, link_classes);
  std::vector<double> rates(flow_classes.first.size());
  quotient.fill(std::vector<char>(rates.size(), 1), rates);
  return to_flows(flow_classes, rates);
}

}  // namespace temper::sim_hw
