// Which place a worker that nobody of its run started asks for: the one that its command line
// names, else the one that whatever launched it numbers it as.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace temper::actors {

/// Of this process, as getenv() gives it; null: not set.
using Environment = std::function<const char*(const char* name)>;

/// The number of this process among those that were launched together: by torchrun (RANK), mpirun
/// (OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK), srun (SLURM_PROCID) or a Kubernetes job with
/// indexed completion (JOB_COMPLETION_INDEX). The launcher that is nearest to the process counts:
/// torchrun under srun, mpirun in an allocation. None: by none of them. Error: it is no number.
Result<std::optional<std::int64_t>> launched_rank(const Environment& environment);

/// As actor.hello has it: `rollout-3`, `rollout`, `#3` or `any`. At most one of the first three is
/// given.
Result<std::string> place_of(const std::string& slot,
                             const std::string& role,
                             std::optional<std::int64_t> rank,
                             const Environment& environment);

}  // namespace temper::actors
