// Whether the trainer's cards are lent to the rollout while the trainer waits (hybrid placement).
//
// Rule.     Lend iff remaining > 0 and benefit > (1 + margin) * cost, with
//             benefit = remaining * per_response * (1 - 1 / scaling)
//             scaling = (lent + fixed) / fixed, in engines
//           remaining: responses that the next update still needs; per_response: seconds per
//           generated response, over the last window of responses; cost: mean time of the last 3
//           loans in transit, out and back, nothing before the first.
// Hysteresis. margin + 0.05 after 2 idle loans in a row, - 0.03 after 2 calm ones, within [0, 1]. A
//           loan is idle if the cards came back sooner than the way there and back took.
// Source.   docs/explanation/co-location.md, section 2.4. When a loan counts as idle, and that the
// threshold is a
//           margin on the cost, are choices of our own.
// Range.    The benefit takes rollout to scale with engines. Decoding does so less the emptier they
//           are, so it is an upper limit.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <deque>
#include <optional>

namespace temper::orchestrator {

class LoanEstimate {
 public:
  LoanEstimate() = default;
  /// Number of engines on exclusive cards and on lent cards; responses per step.
  LoanEstimate(std::size_t fixed, std::size_t lent, std::int64_t window)
      : scaling_(static_cast<double>(fixed + lent) / static_cast<double>(fixed)), window_(window) {}

  /// So many more responses are generated.
  void generated(std::int64_t responses, Time now);
  bool pays(std::int64_t remaining) const;

  // --- The way of a loan
  void leaves(Time now) { left_ = now; }
  void arrives(Time now) { arrived_ = now; }
  void recalled(Time now) { recalled_ = now; }
  void returns(Time now);

  double margin() const { return margin_; }
  /// Seconds of the last loans in transit; none before the first has returned.
  std::optional<double> mean_cost() const;
  std::optional<double> per_response() const { return per_response_; }

 private:
  double scaling_ = 1;
  std::int64_t window_ = 1;

  double margin_ = 0;
  std::int32_t idle_ = 0, calm_ = 0;  ///< In a row.
  std::deque<double> costs_;
  std::optional<double> per_response_;
  std::int64_t counted_ = 0;
  std::optional<Time> counted_from_;
  Time left_{}, arrived_{}, recalled_{};
};

}  // namespace temper::orchestrator
