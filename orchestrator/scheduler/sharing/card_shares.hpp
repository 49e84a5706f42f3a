// Whose cards scoring and training get where engines give them up one by one
// (placement.switching: one_by_one). The trainer has a layout for each of a few shares, checked
// before the run (pipeline/card_shares.hpp); a share is the cards of so many engines.
//
// Rule.   Of E engines, k may leave if the others have at most `limit` of the R responses to
//         generate on each:
//           R <= limit * (E - k)
//         The limit is `crowded` for a part of a batch, and `slots` for a batch that waits.
//         fits(): whether k may; as long as they may, those that have left stay away.
//         spare(): the largest share k that may and that the groups at hand fill: fewer cost the
//         trainer more on many cards than on few. An engine that is less crowded decodes hardly
//         faster, so that the work of k engines is done by the others at little cost.
//         smallest_with_room(): the smallest share that may, by `slots`.
//         pressing(): a batch waits for its update: the largest share that may, by `crowded`, else
//         by `slots`, however few groups are left of it. If none may, the largest share: no engine
//         decodes faster with more responses than it holds, so what training gains, decoding loses,
//         whichever share trains, and fewer turns move fewer responses.
//
//         emptiest(): those with the fewest responses leave, which costs the fewest moves; of equal
//         ones the one with the oldest weights, then the first.
// Range.  Engines that are alike. Source. Our own.
#pragma once

#include "core/ids.hpp"

#include <algorithm>
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

  /// Responses on an engine.
  struct Room {
    double crowded = 1;      ///< More slow its steps down.
    std::int64_t slots = 1;  ///< Most that its slots and its KV cache hold.
  };

  CardShares() = default;
  /// `shares`: engines, ascending. `parts`: for each, groups that fill it; empty: any do.
  CardShares(std::vector<std::int32_t> shares, std::vector<std::int32_t> parts, const Room& room)
      : shares_(std::move(shares)),
        parts_(std::move(parts)),
        slots_(static_cast<double>(room.slots)),
        crowded_(std::min(room.crowded, slots_)) {}

  /// Groups that fill this share.
  std::int64_t part(std::int32_t share) const;
  /// Whether so many may leave.
  bool fits(std::int32_t share, std::int64_t engines, std::int64_t responses) const {
    return fits(share, engines, responses, crowded_);
  }
  /// 0: none may leave.
  std::int32_t spare(std::int64_t engines, std::int64_t responses, std::int64_t groups) const {
    return largest(engines, responses, crowded_, groups);
  }
  /// 0: none may leave.
  std::int32_t smallest_with_room(std::int64_t engines, std::int64_t responses) const;
  std::int32_t pressing(std::int64_t engines, std::int64_t responses) const;
  /// So many, those that have left first.
  static std::vector<ActorId> emptiest(std::vector<Engine> engines, std::int32_t share);

 private:
  bool fits(std::int32_t share, std::int64_t engines, std::int64_t responses, double limit) const;
  std::int32_t largest(std::int64_t engines,
                       std::int64_t responses,
                       double limit,
                       std::int64_t groups) const;

  std::vector<std::int32_t> shares_;
  std::vector<std::int32_t> parts_;
  double slots_ = 1;
  double crowded_ = 1;
};

}  // namespace temper::orchestrator
