// The section `cost`: prices and power of cards. They change nothing in a run, only its figures
// (orchestrator/metrics/cost.hpp).
#pragma once

#include "core/describe.hpp"

#include <optional>

namespace temper::orchestrator {

struct CostSection {
  double card_hour = 0;                       ///< Price, in any currency; 0: not given.
  std::optional<double> rollout_card_hour{};  ///< Of cards that only rollout engines have.
  double idle_watts = 0, busy_watts = 0;      ///< Of a card; both 0: not given.
  std::optional<double> train_watts{}, decode_watts{};

  bool operator==(const CostSection&) const = default;
};

void describe(auto& v, CostSection& c) {
  v.field(1,
          "card_hour",
          c.card_hour,
          {.doc = "Price of a card for an hour, in any currency. Every card of the run is paid for "
                  "the whole wall time. 0: prices are not shown.",
           .min = 0.0,
           .max = 1e9});
  v.field(2,
          "rollout_card_hour",
          c.rollout_card_hour,
          {.doc = "The same for cards that only rollout engines have, such as spot capacity. Null: "
                  "`card_hour`.",
           .min = 0.0,
           .max = 1e9});
  v.field(3,
          "idle_watts",
          c.idle_watts,
          {.doc = "Power of a card that waits or has no actor, with its share of the host and the "
                  "network if these are to be counted.",
           .min = 0.0,
           .max = 1e6});
  v.field(4,
          "busy_watts",
          c.busy_watts,
          {.doc = "Power of a card that works. 0, with `idle_watts: 0`: energy is not shown.",
           .min = 0.0,
           .max = 1e6});
  v.field(5,
          "train_watts",
          c.train_watts,
          {.doc = "Power of a card that trains. Null: `busy_watts`.", .min = 0.0, .max = 1e6});
  v.field(6,
          "decode_watts",
          c.decode_watts,
          {.doc = "Power of a card that decodes. Null: `busy_watts`.", .min = 0.0, .max = 1e6});
}

}  // namespace temper::orchestrator
