// What acts next: sources, each with at most one pending event, ordered by (time, number of the
// source), so that what happens at one time happens in one order. A source with several events of
// its own keeps them itself and is pending at the earliest, hence no sequence number here.
//
// A tournament: a complete binary tree of times over the sources, each node the earlier of its two.
// set(), clear() and next() walk one path of it, log2(sources) nodes; what times there are and how
// they spread makes no difference. Sixteen bytes per source, nothing allocated after construction.
// Deterministic. Values; one owner.
#pragma once

#include "core/check.hpp"
#include "core/units.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace temper::sim_hw {

class EventQueue {
 public:
  using Source = std::uint32_t;

  explicit EventQueue(std::size_t sources)
      : leaves_(std::bit_ceil(std::max<std::size_t>(1, sources))), nodes_(2 * leaves_, kNever) {}

  /// The source's next event, in place of the one it had. Requires: at < Time::max().
  void set(Source source, Time at) {
    TEMPER_DCHECK(at < kNever, "an event has a time");
    put(source, at);
  }
  /// It has none.
  void clear(Source source) { put(source, kNever); }
  void set(Source source, std::optional<Time> at) { put(source, at.value_or(kNever)); }

  bool empty() const { return earliest() == kNever; }
  /// Time of the earliest event; none: the queue is empty.
  std::optional<Time> time() const { return empty() ? std::nullopt : std::optional(earliest()); }
  /// Whose it is: of several at that time, the first. Requires: not empty.
  Source next() const {
    TEMPER_DCHECK(!empty(), "an event is pending");
    std::size_t at = 1;
    while (at < leaves_)
      at = 2 * at + static_cast<std::size_t>(nodes_[2 * at] != nodes_[1]);
    return static_cast<Source>(at - leaves_);
  }
  /// Calls `use(source)` for each source whose event is at time(), ascending. `use` leaves the
  /// queue alone.
  template <class Use>
  void for_each_next(Use&& use) const {
    if (!empty())
      visit(1, use);
  }

 private:
  static constexpr Time kNever = Time::max();

  Time earliest() const { return nodes_[1]; }
  void put(Source source, Time at) {
    TEMPER_DCHECK(source < leaves_, "sources are numbered from 0");
    std::size_t node = leaves_ + source;
    for (nodes_[node] = at; node > 1; nodes_[node] = at) {
      const Time other = nodes_[node ^ 1];
      at = other < at ? other : at;
      node /= 2;
    }
  }
  template <class Use>
  void visit(std::size_t node, Use& use) const {
    if (nodes_[node] != earliest())
      return;
    if (node >= leaves_) {
      use(static_cast<Source>(node - leaves_));
      return;
    }
    visit(2 * node, use);
    visit(2 * node + 1, use);
  }

  std::size_t leaves_;       ///< A power of two.
  std::vector<Time> nodes_;  ///< The children of i are 2 i and 2 i + 1; the sources come last.
};

}  // namespace temper::sim_hw
