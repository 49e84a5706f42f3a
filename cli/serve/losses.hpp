// The largest losses of card time of a run, ranked, each with what would change it and by how much
// at most; and by how much the simulator says, where it was asked. Pure.
#pragma once

#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/watch/predictions.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

struct Loss {
  std::string what;  ///< "trainer waits for data: groups N (v0 N)"
  actors::CardState state = actors::CardState::Idle;
  double card_s = 0;     ///< Card time.
  double share = 0;      ///< Of all card time.
  double most_gain = 0;  ///< If none of it were lost and all else stayed: 1 / (1 - share) - 1.
  double longest_s = 0, longest_at_s = 0;
  std::string longest_on;
  std::string advice;   ///< What would change it.
  std::string command;  ///< What tells whether it would, before it is tried; empty: nothing does.
  std::optional<double> predicted;  ///< Gain of tokens/s that this command has said, relative.
  double predicted_error = 0;       ///< A gain below it is not told apart from none.
};
template <class V>
void describe(V& v, Loss& l) {
  v.field(1, "what", l.what);
  v.field(2, "state", l.state);
  v.field(3, "card_s", l.card_s);
  v.field(4, "share", l.share);
  v.field(5, "most_gain", l.most_gain);
  v.field(6, "longest_s", l.longest_s);
  v.field(7, "longest_at_s", l.longest_at_s);
  v.field(8, "longest_on", l.longest_on);
  v.field(9, "advice", l.advice);
  v.field(10, "command", l.command);
  v.field(11, "predicted", l.predicted);
  v.field(12, "predicted_error", l.predicted_error);
}

/// Longest card time first; those under a thousandth of all are left out. `run`: its folder, for
/// the commands; `predictions`: those that were kept of it.
std::vector<Loss> rank_losses(const orchestrator::Summary& summary,
                              const std::string& run,
                              const std::vector<orchestrator::Prediction>& predictions = {});

}  // namespace temper::cli
