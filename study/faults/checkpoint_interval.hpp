// Optimal checkpoint interval in closed form.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"

namespace temper::study {

/// Inputs of the equations; seconds.
struct CheckpointTerms {
  double save_s = 0;      ///< Time that the run waits for one checkpoint.
  double failures_s = 0;  ///< Mean time between failures that roll the run back; infinite: none do.
};

/// save_s: parameters x bytes of each / bandwidth. failures_s: failures of everything that takes a
/// trainer card: its hosts, the cards in use there, its cards' links, its supernodes. Other
/// failures cost engines but no finished work. Requires: simulated hardware, no failure trace.
CheckpointTerms checkpoint_terms(const orchestrator::ResolvedPipeline& pipeline);

/// J. W. Young (1974): sqrt(2 C M), for C much smaller than M. Seconds of work between two
/// checkpoints.
double young_interval(const CheckpointTerms& terms);
/// J. T. Daly (2006), equation 37: a higher-order estimate of the same.
///   sqrt(2 C M) (1 + 1/3 sqrt(C / 2M) + 1/9 C / 2M) - C   for C < 2M, else M
double daly_interval(const CheckpointTerms& terms);

}  // namespace temper::study
