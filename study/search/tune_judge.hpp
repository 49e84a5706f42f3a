// Evaluates the figures of a run in a search (tune.hpp): its score by the objective, the
// constraints that it violates, and the choice of the answer. Borrows its options.
#pragma once

#include "study/search/tune.hpp"
#include "study/search/tune_screen.hpp"

#include <string>
#include <vector>

namespace temper::study {

class TuneJudge {
 public:
  /// Requires: options.curve, if the objective is a reward.
  explicit TuneJudge(const TuneOptions& options);

  /// More is better; nullopt: the objective does not cover it.
  const Score& score() const { return score_; }
  std::optional<double> score_of(const Rates& rates) const;
  /// By the curve; nullopt: there is no curve, or it does not cover the staleness.
  std::optional<double> hours_to_reward(const Rates& rates) const;
  /// Stores the rates by the closed form, or of a sampled run, in the candidate's row.
  void fill_closed(Candidate& candidate, const Rates& rates) const;
  void fill_sampled(Candidate& candidate, const Rates& rates) const;
  /// "46.2k tokens/s (separate, eta 2)", for a row with a sampled run.
  std::string text_of(const TuneRow& row) const;
  /// Stores the rates of a full run, or why there are none, in the candidate's row, and violations
  /// of the constraints in `reason`.
  void fill(Candidate& candidate, const Result<Figures>& result, const Rates Figures::*rates) const;
  /// Sorts `tried`, best first; finds the fastest without violations, the plans that tie with it by
  /// `tuned.error`, and the least stale of these. Error: there is none; names the nearest and by
  /// how much it fails.
  Status choose(TuneResult& tuned) const;

 private:
  void note_violations(Candidate& candidate) const;
  /// The objective, more is better; 0: none.
  double worth(const Candidate& candidate) const;
  void advise(TuneResult& tuned) const;

  const TuneOptions& options_;
  const Score score_;
};

/// `cards`: resolve_placement() of the configuration.
TuneRow tune_row(const orchestrator::PipelineConfig& config,
                 const orchestrator::PlacementConfig& cards,
                 std::string found_by,
                 std::string vary);

/// The closed form against the sampled runs of all rows that have one, by tokens/s, or by the
/// objective if that is price or energy; none with fewer than two.
std::optional<TuneResult::Agreement> agreement_of(const std::vector<const TuneRow*>& rows);

/// The bounds to try. Errors: none is given; none is within the limit.
Result<std::vector<double>> allowed_etas(const TuneOptions& options);

}  // namespace temper::study
