// The configurations that a search may try for one placement of a simulated run: a few axes of
// whole numbers, and the configuration at each point. Settings that are not an axis follow from the
// point (study/simulate/layouts.hpp).
//
//   engine_cards      cards per rollout engine: powers of two
//   tp                devices per attention replica, as study/simulate/engine_space.hpp
//   slots             responses in flight per attention replica; at most the number that the bound
//                     allows to be outstanding
//   reference_cards   exclusive cards of the reference, about 1/24 to 1/4 of all; 0 without a
//                     reference, and if it is time-shared with the others (fused)
//   rollout_share     sixteenths of all cards that are exclusive to rollout, in whole engines
//                     (separate, hybrid; otherwise rollout has the cards that the reference leaves)
//   return_share      hundredths of placement.return_share (colocated and fused, if the bound lets
//                     a batch be ready before all generation has ended)
//   lending           0 auto, 1 always (hybrid)
//   total_cards       cards of all roles, the first ones of the cluster; on request
//
// With several clusters each role keeps its cards; only engine_cards, tp and slots are axes.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::study {

class Space {
 public:
  struct Axis {
    std::string name;
    std::vector<std::int64_t> values;
  };
  using Point = std::vector<std::size_t>;  ///< Index into the values of each axis.

  /// Everything except the axes is as in `like`; cluster and model are those of `run`.
  /// `total_cards`: values of that axis, at most the cards of `like`; empty: only these.
  Space(orchestrator::PipelineConfig like,
        orchestrator::PlacementMode mode,
        const actors::SimulatedRun& run,
        std::vector<std::int64_t> total_cards = {});

  /// Restricts the axis with that name to these values, unless it has only one. Error: unknown
  /// axis, or unknown value.
  Status limit(const Axis& to);

  const std::vector<Axis>& axes() const { return axes_; }
  std::size_t size() const;
  /// The n-th point, the last axis fastest. Requires: n < size().
  Point point(std::size_t n) const;
  /// None: the numbers are no valid placement (no whole engine, no card left).
  std::optional<orchestrator::PipelineConfig> at(const Point& point) const;

 private:
  /// The cards of a point.
  struct Split {
    std::int64_t total = 0, engine = 0, reference = 0, sixteenths = 0;
  };
  void add_placement_axes(std::vector<std::int64_t> total_cards);
  std::optional<orchestrator::PipelineConfig> placed(const Split& split) const;

  const orchestrator::PipelineConfig like_;
  const orchestrator::PlacementMode mode_;
  const std::int64_t devices_per_card_;
  std::vector<Axis> axes_;
};

}  // namespace temper::study
