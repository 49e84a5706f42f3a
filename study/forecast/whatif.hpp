// Predicts a recorded run under other settings: the same lengths of prompts and responses and the
// same engine times, rescheduled by the same scheduler.
//
// Local runs: times come from the run's own log (study/machine/run_calibration.hpp), with the shape
// of a calibration if one is given. Levels are adjusted iteratively until the run with unchanged
// settings spends as much time on each kind of work as the record says (kRounds times, each kind by
// the ratio of the two). Simulated runs: times come from the cost model, lengths from the run's
// seed; they are checked against the record.
//
// The answer is relative: the rescheduled run with other settings over the rescheduled run with
// unchanged settings, times the recorded figures. Its error bound is the error on unchanged
// settings; a smaller difference is reported as no difference.
//   expected = recorded x counterfactual / unchanged          (tokens/s; seconds likewise)
//   regret   = expected - recorded                             (> 0: the other settings win)
#pragma once

#include "study/forecast/forecast.hpp"

namespace temper::study {

struct WhatifOptions {
  std::filesystem::path run;      ///< Run folder.
  std::vector<std::string> sets;  ///< key=value
  std::optional<MachineModel> shape;
};

struct Whatif {
  std::string run;
  std::string changed;  ///< "key=value ..."
  RunFigures recorded;
  RunFigures unchanged;       ///< Rescheduled with unchanged settings.
  RunFigures counterfactual;  ///< Rescheduled with the other settings.
  double error = 0;           ///< Relative error of trained tokens/s with unchanged settings.
  RunFigures expected;        ///< Tokens/s and seconds; other fields equal the counterfactual.
  double regret_per_s = 0;    ///< Trained tokens/s.
  double regret_s = 0;        ///< Seconds that the run would have been shorter.
  enum class Verdict { Wins, Loses, Same } verdict = Verdict::Same;
  std::int64_t recorded_lengths = 0;  ///< Responses whose recorded length is used.
};

/// Errors: the folder holds no run; the run did not complete; an unknown key (with the nearest
/// name); a key whose effect a log cannot determine; errors of forecast_run() or simulate().
Result<Whatif> whatif(const WhatifOptions& options);

std::string whatif_text(const Whatif& answer);

void describe(auto& v, Whatif& w) {
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
