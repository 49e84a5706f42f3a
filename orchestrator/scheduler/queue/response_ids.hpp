// How responses are numbered: those of group g are g * G to g * G + G - 1, where G is the number of
// responses per group.
#pragma once

#include "core/ids.hpp"

#include <algorithm>
#include <cstdint>

namespace temper::orchestrator {

class ResponseIds {
 public:
  ResponseIds() = default;
  explicit ResponseIds(std::int32_t responses_per_group)
      : per_group_(static_cast<std::uint64_t>(std::max(1, responses_per_group))) {}

  std::uint64_t per_group() const { return per_group_; }
  GroupId group_of(ResponseId r) const { return GroupId(r.value() / per_group_); }
  /// Its place within its group, from 0.
  std::size_t place_of(ResponseId r) const {
    return static_cast<std::size_t>(r.value() % per_group_);
  }
  ResponseId at(GroupId group, std::size_t place) const {
    return ResponseId(group.value() * per_group_ + place);
  }

 private:
  std::uint64_t per_group_ = 1;
};

}  // namespace temper::orchestrator
