#include "orchestrator/scheduler/sharing/card_shares.hpp"

#include <algorithm>
#include <tuple>

namespace temper::orchestrator {

bool CardShares::fits(std::int32_t share,
                      std::int64_t engines,
                      std::int64_t responses,
                      double crowding) const {
  const auto left = static_cast<double>(std::max<std::int64_t>(0, engines - share));
  return static_cast<double>(responses) <= crowding * left * static_cast<double>(slots_);
}

std::int32_t CardShares::largest(std::int64_t engines,
                                 std::int64_t responses,
                                 double crowding) const {
  std::int32_t most = 0;
  for (const std::int32_t share : shares_) {
    if (fits(share, engines, responses, crowding))
      most = std::max(most, share);
  }
  return most;
}

std::int32_t CardShares::smallest(std::int64_t engines,
                                  std::int64_t responses,
                                  double crowding) const {
  const auto least = std::ranges::find_if(
      shares_, [&](std::int32_t share) { return fits(share, engines, responses, crowding); });
  return least == shares_.end() ? 0 : *least;
}

std::int32_t CardShares::pressing(std::int64_t engines, std::int64_t responses) const {
  if (const std::int32_t some = spare(engines, responses); some > 0)
    return some;
  if (const std::int32_t some = largest(engines, responses, 1); some > 0)
    return some;
  return shares_.empty() ? 0 : shares_.front();
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
