// How often a run should save, in closed form.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"

namespace temper::study {

/// What the equations are about; seconds.
struct CheckpointTerms {
  double save_s = 0;      ///< The run waits so long for one checkpoint.
  double failures_s = 0;  ///< Mean time between failures that return the run; infinite: none do.
};

/// Save: parameters x bytes of each / bandwidth. Failures: of whatever takes a card of the trainer:
/// every host it is on and the cards in use there, its cards' links, its supernodes. Other failures
/// cost engines, and no work that is done. Requires: simulated hardware, no trace of failures.
CheckpointTerms checkpoint_terms(const orchestrator::ResolvedPipeline& pipeline);

/// J. W. Young (1974): sqrt(2 C M), for C much smaller than M. Seconds of work between two saves.
double young_interval(const CheckpointTerms& terms);
/// J. T. Daly (2006), equation 37: the same, of a higher order.
///   sqrt(2 C M) (1 + 1/3 sqrt(C / 2M) + 1/9 C / 2M) - C   for C < 2M, else M
double daly_interval(const CheckpointTerms& terms);

}  // namespace temper::study
