// Processor sharing among the threads of several processes on one machine: the share of a core that
// each job gets now, and when it ends.
//
// Model. A job is work of one thread, in seconds of exclusive use of its cores while no other core
// works. It may run on a set of cores:
//   one of them  it runs on the least crowded one and moves whenever that changes
//   all of them  a team of threads, one per core, that waits for its slowest member
//   on one of them  it is on the least crowded one, moved there whenever that changes
//   on all of them  as a team of threads, one per core, that waits for its slowest member
// A core divides its time equally among the jobs on it; a job of one core runs at
//   rate = 1 / jobs on its core / (1 + (slowdown - 1) (busy cores - 1) / (cores - 1))
// and a team at the smallest rate of its cores, without the slowdown, because team times are
// measured with all of its cores at work. `slowdown` is the factor by which the job takes longer
// when all other cores work too (shared caches, memory, clock).
//
// Assumed: the operating system's scheduler is fair over the length of a job, and context switches
// and wake-ups cost nothing. Range: jobs of about 10 us or more; no more jobs than a core can share
// in one scheduler slice.
// Deterministic: ties go to the lower core and the older job.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace temper::sim_hw {

class SharedCores {
 public:
  using JobId = std::uint64_t;
  enum class Spread { OneOf, AllOf };
  struct Work {
    double seconds = 0;
    std::vector<std::uint32_t> cores;  ///< Empty: any core.
    Spread spread = Spread::OneOf;
    double slowdown = 1;
  };

  /// Requires: at least one core.
  explicit SharedCores(std::uint32_t cores) : busy_(cores) {}

  /// Starts a job at the time of the last advance(). Requires: the cores exist.
  JobId start(const Work& work);
  /// Time at which the next job ends if none starts or stops before; nullopt: no job runs.
  std::optional<Time> next_end() const;
  /// Runs all jobs up to `now`. Requires: previous time <= now <= next_end().
  void advance(Time now);
  /// Removes and returns the finished jobs, oldest first.
  std::vector<JobId> take_ended();
  bool idle() const { return jobs_.empty(); }

 private:
  struct Job {
    JobId id = 0;
    double left = 0;  ///< Seconds of work left.
    Work work;
    std::uint32_t core = 0;  ///< OneOf: the core that it runs on.
    double rate = 1;
  };
  void place();

  std::vector<Job> jobs_;           ///< Indexed by job id.
  std::vector<std::int32_t> busy_;  ///< Number of jobs on each core.
  Time now_{};
  JobId next_ = 0;
};

}  // namespace temper::sim_hw
