// What a recorded run would have done under other settings: the same lengths of prompts and
// responses, the same times of engines, decided again by the same scheduler.
//
// Local runs: times are those of the run's own log (study/machine/run_calibration.hpp), with the
// shape of a calibration if one is given; levels are set by repetition until the run with unchanged
// settings is as busy with each kind of work as the record says (kRounds times, each kind by the
// ratio of the two). Simulated runs: times are those of the cost model, lengths those of the run's
// seed; that they are the recorded ones is checked.
//
// The answer is relative: the run with other settings against the run with unchanged ones, both as
// decided again, times what was recorded. The yardstick is what unchanged settings miss: a
// difference smaller than that is not told apart from none.
//   expected = recorded x counterfactual / unchanged          (tokens/s; seconds likewise)
//   regret   = expected - recorded                             (> 0: the other settings win)
#pragma once

#include "study/forecast/forecast.hpp"

namespace temper::study {

struct WhatifOptions {
  std::filesystem::path run;      ///< Its folder.
  std::vector<std::string> sets;  ///< key=value
  std::optional<MachineModel> shape;
};

struct Whatif {
  std::string run;
  std::string changed;  ///< "key=value ..."
  RunFigures recorded;
  RunFigures unchanged;       ///< Decided again.
  RunFigures counterfactual;  ///< With other settings.
  double error = 0;           ///< Of unchanged trained tokens/s, relative to those recorded.
  RunFigures expected;        ///< Tokens/s and seconds; the rest is of the counterfactual.
  double regret_per_s = 0;    ///< Trained tokens/s.
  double regret_s = 0;        ///< Seconds that the run would have been shorter.
  enum class Verdict { Wins, Loses, Same } verdict = Verdict::Same;
  std::int64_t recorded_lengths = 0;  ///< Responses whose length is the recorded one.
};

/// Errors: a folder that holds no run; one that did not end well; an unknown key (with the nearest
/// name); a setting whose effect no log can tell; what forecast_run() or simulate() refuse.
Result<Whatif> whatif(const WhatifOptions& options);

std::string whatif_text(const Whatif& answer);

template <class V>
void describe(V& v, Whatif& w) {
  v.field(1, "run", w.run);
  v.field(2, "changed", w.changed);
  v.field(3, "recorded", w.recorded);
  v.field(4, "unchanged", w.unchanged);
  v.field(5, "error", w.error);
  v.field(6, "counterfactual", w.counterfactual);
  v.field(7, "expected", w.expected);
  v.field(8, "regret_per_s", w.regret_per_s);
  v.field(9, "regret_s", w.regret_s);
  v.field(10, "verdict", w.verdict);
  v.field(11, "recorded_lengths", w.recorded_lengths);
}

}  // namespace temper::study

namespace temper {
template <>
struct EnumNames<study::Whatif::Verdict> {
  using V = study::Whatif::Verdict;
  static constexpr std::array<std::pair<V, std::string_view>, 3> value{
      {{V::Wins, "wins"}, {V::Loses, "loses"}, {V::Same, "same"}}};
};
}  // namespace temper
