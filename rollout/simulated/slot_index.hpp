// Maps response ids to slots: open addressing with linear probing, at most half full. Removal moves
// entries, so there are no tombstones; entries need no allocation.
#pragma once

#include "core/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace temper::rollout {

class SlotIndex {
 public:
  using Slot = std::uint32_t;

  std::optional<Slot> find(ResponseId id) const {
    const std::size_t at = place_of(id);
    return entries_[at].used ? std::optional(entries_[at].slot) : std::nullopt;
  }
  /// Requires: the response is not in the table.
  void add(ResponseId id, Slot slot) {
    if (2 * ++size_ > entries_.size())
      grow();
    entries_[place_of(id)] = {id, slot, true};
  }
  /// Requires: the response is in the table.
  void remove(ResponseId id) {
    --size_;
    std::size_t hole = place_of(id);
    for (std::size_t at = next(hole); entries_[at].used; at = next(at)) {
      // An entry may fill the hole unless its home position lies behind the hole.
      if (distance(home(entries_[at].id), at) >= distance(hole, at)) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].used = false;
  }

 private:
  struct Entry {
    ResponseId id;
    Slot slot = 0;
    bool used = false;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t next(std::size_t at) const { return (at + 1) & mask(); }
  std::size_t distance(std::size_t from, std::size_t to) const { return (to - from) & mask(); }
  /// Ids of a group are consecutive, and so are their entries.
  std::size_t home(ResponseId id) const { return static_cast<std::size_t>(id.value()) & mask(); }
  std::size_t place_of(ResponseId id) const {
    std::size_t at = home(id);
    while (entries_[at].used && entries_[at].id != id)
      at = next(at);
    return at;
  }
  void grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& e : old) {
      if (e.used)
        entries_[place_of(e.id)] = e;
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(64);  ///< The size is a power of two.
  std::size_t size_ = 0;
};

}  // namespace temper::rollout
