// The configurations that a search may try for one way to place the roles of a simulated run: a
// few axes of whole numbers, and what a point on them means. What is not an axis follows from the
// point (study/simulate/layouts.hpp).
//
//   engine_cards      of one rollout engine: powers of two
//   tp                devices of one replica of attention, as study/simulate/engine_space.hpp
//   slots             responses in flight per replica of attention; never more than the bound lets
//                     be outstanding
//   reference_cards   own cards of the reference, about 1/24 to 1/4 of all; 0 without a reference,
//                     and where it takes turns with the others (fused)
//   rollout_share     sixteenths of all cards that are for rollout alone, in whole engines
//                     (separate, hybrid; in the others rollout has what the reference leaves)
//   return_share      hundredths of placement.return_share (colocated and fused, where the bound
//                     lets a batch be ready before all generation is over)
//   lending           0 auto, 1 always (hybrid)
//
// With several clusters each role keeps its cards: engine cards, tp and slots are the axes.
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
  using Point = std::vector<std::size_t>;  ///< A place in the values of each axis.

  /// Everything but the axes is as in `like`, whose cluster and model are those of `run`.
  Space(orchestrator::PipelineConfig like,
        orchestrator::PlacementMode mode,
        const actors::SimulatedRun& run);

  /// From now on an axis of that name has these of its values alone, unless it has but one.
  /// Error: no axis has the name, or it has no such value.
  Status limit(const Axis& to);

  const std::vector<Axis>& axes() const { return axes_; }
  std::size_t size() const;
  /// The n-th of all, the last axis fastest. Requires: n < size().
  Point point(std::size_t n) const;
  /// None: the numbers do not make a placement (no whole engine, no card left).
  std::optional<orchestrator::PipelineConfig> at(const Point& point) const;

 private:
  void add_placement_axes();
  std::optional<orchestrator::PipelineConfig> placed(std::int64_t engine,
                                                     std::int64_t reference,
                                                     std::int64_t sixteenths) const;

  const orchestrator::PipelineConfig like_;
  const orchestrator::PlacementMode mode_;
  const std::int64_t devices_per_card_;
  std::vector<Axis> axes_;
};

}  // namespace temper::study
