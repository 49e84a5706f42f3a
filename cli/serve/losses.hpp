// Where the card time of a run went: the busiest cards (the bottleneck), and the largest losses,
// ranked, each with advice, an upper limit of the gain, and the simulator's prediction if one is
// stored. Pure functions.
//
// A setting is recommended only if the run does not have it and a stored prediction (`temper
// whatif` or `temper tune` with --keep) shows a gain larger than its error. Otherwise the loss has
// only its cause and the command that predicts the effect.
//
// No gain exceeds what the busiest cards allow: a run takes at least as long as its busiest cards
// were occupied, whatever the other cards wait for.
#pragma once

#include "cli/watch/live.hpp"
#include "orchestrator/watch/predictions.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

/// The busiest group of cards with the same roles.
struct BusiestCards {
  std::vector<actors::RoleKind> roles;
  std::uint64_t cards = 0;
  double busy = 0;        ///< Share of their time with work.
  double occupied = 0;    ///< Busy, moving weights or switching roles, as share of the time up.
  bool limits = false;    ///< Whether they are the bottleneck: occupied >= kLimit.
  double most_gain = 0;   ///< Upper limit of any change elsewhere, relative.
  std::string headline;   ///< One sentence.
  std::string advice;     ///< How to speed up the run if they are the bottleneck; else empty.
  std::string command{};  ///< Command that predicts the effect; empty: none.
};

struct Loss {
  std::string what;  ///< "trainer waits for data: groups N (v0 N)"
  actors::CardState state = actors::CardState::Idle;
  double card_s = 0;     ///< Card seconds.
  double share = 0;      ///< Share of all card time.
  double most_gain = 0;  ///< Upper limit of the relative gain if nothing were lost here.
  double longest_s = 0, longest_at_s = 0;
  std::string longest_on;
  std::string advice;               ///< Cause; names a setting only if its prediction is a gain.
  std::string command;              ///< Command that predicts the effect; empty: none.
  std::optional<double> predicted;  ///< Relative gain in tokens/s from that command.
  double predicted_error = 0;       ///< A smaller gain is within the error.
};

struct Losses {
  std::optional<BusiestCards> busiest;  ///< nullopt: no card has worked yet.
  std::vector<Loss> losses;             ///< By card time; without those below 0.1 %.
};

void describe(auto& v, BusiestCards& b) {
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
void describe(auto& v, Loss& l) {
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
void describe(auto& v, Losses& l) {
  v.field(1, "busiest", l.busiest);
  v.field(2, "losses", l.losses);
}

/// Facts about a run besides its figures.
struct RunFacts {
  std::string folder;                           ///< Run folder, for the commands.
  std::map<std::string, std::string> settings;  ///< From config.yaml: "placement.mode" -> "hybrid".
  std::vector<orchestrator::Prediction> predictions;  ///< Stored predictions.
};

Losses rank_losses(const Live& live, const RunFacts& run);

}  // namespace temper::cli
