#include "orchestrator/scheduler/sharing/card_shares.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace temper::orchestrator {

std::int64_t CardShares::part(std::int32_t share) const {
  const auto at = std::ranges::find(shares_, share) - shares_.begin();
  return at < std::ssize(parts_) ? parts_[static_cast<std::size_t>(at)] : 1;
}

bool CardShares::fits(std::int32_t share,
                      std::int64_t engines,
                      std::int64_t responses,
                      double limit) const {
  const auto left = static_cast<double>(std::max<std::int64_t>(0, engines - share));
  return static_cast<double>(responses) <= limit * left;
}

std::int32_t CardShares::largest(std::int64_t engines,
                                 std::int64_t responses,
                                 double limit,
                                 std::int64_t groups) const {
  std::int32_t most = 0;
  for (const std::int32_t share : shares_) {
    if (part(share) <= groups && fits(share, engines, responses, limit))
      most = std::max(most, share);
  }
  return most;
}

std::int32_t CardShares::smallest_with_room(std::int64_t engines, std::int64_t responses) const {
  const auto least = std::ranges::find_if(
      shares_, [&](std::int32_t share) { return fits(share, engines, responses, slots_); });
  return least == shares_.end() ? 0 : *least;
}

std::int32_t CardShares::pressing(std::int64_t engines, std::int64_t responses) const {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  for (const double limit : {crowded_, slots_}) {
    if (const std::int32_t some = largest(engines, responses, limit, kAny); some > 0)
      return some;
  }
  return shares_.empty() ? 0 : shares_.back();
}

std::vector<ActorId> CardShares::emptiest(std::vector<Engine> engines, std::int32_t share) {
  std::ranges::stable_sort(
      engines, {}, [](const Engine& e) { return std::tuple(!e.left, e.load, e.version); });
  if (std::ssize(engines) > share)
    engines.resize(static_cast<std::size_t>(share));
  std::vector<ActorId> out;
  out.reserve(engines.size());
  for (const Engine& e : engines)
    out.push_back(e.id);
  return out;
}

}  // namespace temper::orchestrator
