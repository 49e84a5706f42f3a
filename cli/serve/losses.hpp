// Where the card time of a run went: the busiest cards, which no change elsewhere makes faster, and
// the largest losses, ranked, each with what would change it and by how much at most; and by how
// much the simulator says, where it was asked. Pure.
//
// No gain above what the busiest cards allow is claimed: a run takes at least as long as its
// busiest cards were occupied, whatever the others wait for.
#pragma once

#include "cli/watch/live.hpp"
#include "orchestrator/watch/predictions.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

/// Cards that had the same roles, and of all of these the busiest.
struct BusiestCards {
  std::vector<actors::RoleKind> roles;
  std::uint64_t cards = 0;
  double busy = 0;        ///< Share of their time at work.
  double occupied = 0;    ///< The same with weights moved and roles switched, while they were up.
  bool limits = false;    ///< They are the bottleneck: occupied is kLimit or more.
  double most_gain = 0;   ///< Of any change that leaves them and their work as they are.
  std::string headline;   ///< In one sentence.
  std::string advice;     ///< What would make a run faster that they limit; else empty.
  std::string command{};  ///< What tells whether it would; empty: nothing does.
};

struct Loss {
  std::string what;  ///< "trainer waits for data: groups N (v0 N)"
  actors::CardState state = actors::CardState::Idle;
  double card_s = 0;     ///< Card time.
  double share = 0;      ///< Of all card time.
  double most_gain = 0;  ///< If none of it were lost and all else stayed, and the busiest allow it.
  double longest_s = 0, longest_at_s = 0;
  std::string longest_on;
  std::string advice;   ///< What would change it.
  std::string command;  ///< What tells whether it would, before it is tried; empty: nothing does.
  std::optional<double> predicted;  ///< Gain of tokens/s that this command has said, relative.
  double predicted_error = 0;       ///< A gain below it is not told apart from none.
};

struct Losses {
  std::optional<BusiestCards> busiest;  ///< None: no card has done anything yet.
  std::vector<Loss> losses;  ///< Longest card time first; without those under a thousandth of all.
};

template <class V>
void describe(V& v, BusiestCards& b) {
  v.field(1, "roles", b.roles);
  v.field(2, "cards", b.cards);
  v.field(3, "busy", b.busy);
  v.field(4, "occupied", b.occupied);
  v.field(5, "limits", b.limits);
  v.field(6, "most_gain", b.most_gain);
  v.field(7, "headline", b.headline);
  v.field(8, "advice", b.advice);
  v.field(9, "command", b.command);
}
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
template <class V>
void describe(V& v, Losses& l) {
  v.field(1, "busiest", l.busiest);
  v.field(2, "losses", l.losses);
}

/// What is known of a run besides its figures.
struct AboutRun {
  std::string folder;  ///< For the commands.
  std::map<std::string, std::string>
      settings;  ///< Of its config.yaml: "placement.mode" -> "hybrid".
  std::vector<orchestrator::Prediction> predictions;  ///< Those that were kept of it.
};

Losses rank_losses(const Live& live, const AboutRun& run);

}  // namespace temper::cli
