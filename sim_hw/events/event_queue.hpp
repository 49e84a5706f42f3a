// The next event among a fixed set of sources, each with at most one pending event. Events are
// ordered by (time, source number), so simultaneous events have one order. A source with several
// events of its own keeps them itself and registers only the earliest, so no sequence number is
// needed.
//
// A tournament tree: a complete binary tree of times over the sources, each node the earlier of its
// two children. set(), clear() and next() visit log2(sources) nodes, whatever the distribution of
// times. Uses 16 bytes per source and does not allocate after construction. Deterministic; not
// thread-safe.
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

  /// Sets or replaces the source's pending event. Requires: at < Time::max().
  void set(Source source, Time at) {
    TEMPER_DCHECK(at < kNever, "an event has a time");
    put(source, at);
  }
  /// Removes the source's pending event.
  void clear(Source source) { put(source, kNever); }
  void set(Source source, std::optional<Time> at) { put(source, at.value_or(kNever)); }

  bool empty() const { return earliest() == kNever; }
  /// Time of the earliest event; nullopt: the queue is empty.
  std::optional<Time> time() const { return empty() ? std::nullopt : std::optional(earliest()); }
  /// Source of the earliest event; the lowest number wins a tie. Requires: not empty.
  Source next() const {
    TEMPER_DCHECK(!empty(), "an event is pending");
    std::size_t at = 1;
    while (at < leaves_)
      at = 2 * at + static_cast<std::size_t>(nodes_[2 * at] != nodes_[1]);
    return static_cast<Source>(at - leaves_);
  }
  /// Calls `use(source)` for each source whose event is at time(), in ascending order. Requires:
  /// `use` does not modify the queue.
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

  std::size_t leaves_;  ///< A power of two.
  std::vector<Time>
      nodes_;  ///< Node i has the children 2 i and 2 i + 1; the sources are the leaves.
};

}  // namespace temper::sim_hw
