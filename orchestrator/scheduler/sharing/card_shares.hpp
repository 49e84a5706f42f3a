// Whose cards scoring and training get where engines give them up one by one
// (placement.switching: one_by_one). The trainer has a layout for each of a few shares, checked
// before the run (pipeline/card_shares.hpp); a share is the cards of so many engines.
//
// Rule.   Of E engines with `slots` each and R responses to generate, k may leave if the others
// have
//         at most `crowding` of their slots in use:
//           R <= crowding * (E - k) * slots
//         fits(): whether k may; as long as they may, those that have left stay away.
//         spare(): the largest share k that may. An engine that is less crowded decodes hardly
//         faster, so that the work of k engines is done by the others at little cost.
//         smallest(): the smallest share that may.
//         pressing(): a batch waits for its update: the largest share that may with all slots in
//         use, at least the smallest share.
//         emptiest(): those with the fewest responses leave, which costs the fewest moves; of equal
//         ones the one with the oldest weights, then the first.
// Range.  Engines that are alike. Source. Our own.
#pragma once

#include "core/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace temper::orchestrator {

class CardShares {
 public:
  struct Engine {
    ActorId id;
    std::int64_t load = 0;  ///< Responses.
    std::optional<PolicyVersion> version;
    bool left = false;  ///< It has given up its cards before: they stay with the share.
  };

  CardShares() = default;
  /// `shares`: engines, ascending. `slots`: of an engine.
  CardShares(std::vector<std::int32_t> shares, double crowding, std::int64_t slots)
      : shares_(std::move(shares)), crowding_(crowding), slots_(slots) {}

  /// Whether so many may leave.
  bool fits(std::int32_t share, std::int64_t engines, std::int64_t responses) const {
    return fits(share, engines, responses, crowding_);
  }
  /// 0: none may leave.
  std::int32_t spare(std::int64_t engines, std::int64_t responses) const {
    return largest(engines, responses, crowding_);
  }
  /// The smallest share that may leave; 0: none may.
  std::int32_t smallest(std::int64_t engines, std::int64_t responses) const {
    return smallest(engines, responses, crowding_);
  }
  /// The same, with all slots in use.
  std::int32_t smallest_by_slots(std::int64_t engines, std::int64_t responses) const {
    return smallest(engines, responses, 1);
  }
  std::int32_t pressing(std::int64_t engines, std::int64_t responses) const;
  /// So many, those that have left first.
  static std::vector<ActorId> emptiest(std::vector<Engine> engines, std::int32_t share);

 private:
  bool fits(std::int32_t share,
            std::int64_t engines,
            std::int64_t responses,
            double crowding) const;
  std::int32_t largest(std::int64_t engines, std::int64_t responses, double crowding) const;
  std::int32_t smallest(std::int64_t engines, std::int64_t responses, double crowding) const;

  std::vector<std::int32_t> shares_;
  double crowding_ = 1;
  std::int64_t slots_ = 1;
};

}  // namespace temper::orchestrator
