// Strongly typed identifiers: constructed explicitly, read with value(), never converted to a
// number or to another kind of id.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>

namespace temper {

template <class Tag, class Rep = std::uint64_t>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Rep value_ = 0;
};

using ActorId = Id<struct ActorTag, std::uint32_t>;  ///< One actor slot; a replacement keeps the
                                                     ///< id.
using CardId = Id<struct CardTag, std::uint32_t>;
using GroupId = Id<struct GroupTag>;        ///< One prompt and its responses, in dispatch order.
using ResponseId = Id<struct ResponseTag>;  ///< group * responses-per-group + index.
using LeaseId = Id<struct LeaseTag>;        ///< One assignment of work to one actor; never reused.
using PolicyVersion = Id<struct PolicyVersionTag>;  ///< Number of completed optimizer steps.

constexpr PolicyVersion next(PolicyVersion v) {
  return PolicyVersion(v.value() + 1);
}

}  // namespace temper

template <class Tag, class Rep>
struct std::hash<temper::Id<Tag, Rep>> {
  std::size_t operator()(temper::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};

template <class Tag, class Rep>
struct fmt::formatter<temper::Id<Tag, Rep>> : fmt::formatter<Rep> {
  template <class Context>
  auto format(temper::Id<Tag, Rep> id, Context& ctx) const {
    return fmt::formatter<Rep>::format(id.value(), ctx);
  }
};
