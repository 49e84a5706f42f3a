// The cores of a machine shared by the threads of several processes: who gets how much of a core
// now, and when a piece of work ends.
//
// Model (processor sharing). A job is work of a thread, in seconds that it takes while it has its
// cores for itself and no other core works. It may run on a set of cores:
//   on one of them  it is on the least crowded one, moved there whenever that changes
//   on all of them  as a team of threads, one per core, that waits for its slowest member
// A core divides its time equally among the jobs on it; a job of one core runs at
//   rate = 1 / jobs on its core / (1 + (slowdown - 1) (busy cores - 1) / (cores - 1))
// and a team at the smallest rate of its cores, without the slowdown: the time of a team is
// measured with all of its cores at work. `slowdown` is what the job takes longer when every other
// core works too (shared caches, memory, clock).
//
// Assumed: the scheduler of the operating system is fair over times as short as a job, switches for
// nothing, and wakes at once. Range: jobs from some 10 us on; fewer jobs than a core can share in
// one slice of the scheduler.
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
    std::vector<std::uint32_t> cores;  ///< Empty: any.
    Spread spread = Spread::OneOf;
    double slowdown = 1;
  };

  /// Requires: at least one core.
  explicit SharedCores(std::uint32_t cores) : busy_(cores) {}

  /// At the time of the last advance(). Requires: cores that there are.
  JobId start(const Work& work);
  /// When the next job ends if none starts or stops before.
  std::optional<Time> next_end() const;
  /// All work up to `now`. Requires: now is not before the last one, nor after next_end().
  void advance(Time now);
  /// Takes out jobs whose work is done, oldest first.
  std::vector<JobId> take_ended();
  bool idle() const { return jobs_.empty(); }

 private:
  struct Job {
    JobId id = 0;
    double left = 0;  ///< Seconds.
    Work work;
    std::uint32_t core = 0;  ///< OneOf: where it is.
    double rate = 1;
  };
  void place();

  std::vector<Job> jobs_;           ///< By id.
  std::vector<std::int32_t> busy_;  ///< Jobs on each core.
  Time now_{};
  JobId next_ = 0;
};

}  // namespace temper::sim_hw
