// What a search (tune.hpp) makes of the figures of a run: its worth by the objective, which
// constraint it breaks and by how much, and which of all is the answer. Borrows its options.
#pragma once

#include "study/search/tune.hpp"
#include "study/search/tune_screen.hpp"

#include <string>
#include <vector>

namespace temper::study {

class TuneJudge {
 public:
  /// Requires: options.curve, where the objective is a reward.
  explicit TuneJudge(const TuneOptions& options);

  /// More is better; none: the objective says nothing of it.
  const Score& score() const { return score_; }
  std::optional<double> score_of(const Rates& rates) const;
  /// By the curve; none: there is none, or it says nothing of the staleness.
  std::optional<double> hours_to_reward(const Rates& rates) const;
  /// Notes rates of a whole run, or why there are none, in the candidate's row, and what speaks
  /// against it in `reason`.
  void fill(Candidate& candidate, const Result<Figures>& result, const Rates Figures::*rates) const;
  /// Sorts what was tried, best first, finds the fastest that nothing speaks against, what ties
  /// with it by `tuned.error`, and of these the least stale. Error: there is none; the nearest, and
  /// by how much it fails.
  Status choose(Tuned& tuned) const;

 private:
  void note_violations(Candidate& candidate) const;
  /// The objective, more is better; 0: none.
  double worth(const Candidate& candidate) const;
  void advise(Tuned& tuned) const;

  const TuneOptions& options_;
  const Score score_;
};

/// `cards`: resolve_placement() of the configuration.
TuneRow tune_row(const orchestrator::PipelineConfig& config,
                 const orchestrator::PlacementConfig& cards,
                 std::string found_by,
                 std::string vary);

/// The closed form against the thinned runs of all that had one; none: of fewer than two.
std::optional<Tuned::Agreement> agreement_of(const std::vector<const TuneRow*>& rows);

/// The bounds that may be tried. Errors: none is named; none is within the limit.
Result<std::vector<double>> allowed_etas(const TuneOptions& options);

}  // namespace temper::study
