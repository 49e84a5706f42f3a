// The place that an attached worker requests: the one named on its command line, otherwise the rank
// that its launcher assigned.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace temper::actors {

/// Looks up an environment variable like getenv(); null if it is not set.
using Environment = std::function<const char*(const char* name)>;

/// The rank of this process among those launched together by torchrun (RANK), mpirun
/// (OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK), srun (SLURM_PROCID) or an indexed Kubernetes job
/// (JOB_COMPLETION_INDEX). The innermost launcher wins: torchrun under srun, mpirun in an
/// allocation. Empty without a launcher. Error InvalidInput: the value is not a number.
Result<std::optional<std::int64_t>> launched_rank(const Environment& environment);

/// The place in the form of actor.hello: `rollout-3`, `rollout`, `#3` or `any`. Requires: at most
/// one of slot, role and rank is given.
Result<std::string> place_of(const std::string& slot,
                             const std::string& role,
                             std::optional<std::int64_t> rank,
                             const Environment& environment);

}  // namespace temper::actors
