#include "sim_hw/cores/shared_cores.hpp"

#include "core/check.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::sim_hw {
namespace {

/// Remaining work that rounding times to nanoseconds may leave.
constexpr double kDone = 1e-9;

}  // namespace

SharedCores::JobId SharedCores::start(const Work& work) {
  Job job{next_++, std::max(0.0, work.seconds), work};
  if (job.work.cores.empty()) {
    job.work.cores.resize(busy_.size());
    std::iota(job.work.cores.begin(), job.work.cores.end(), 0U);
  }
  for (const std::uint32_t core : job.work.cores)
    TEMPER_CHECK(core < busy_.size(), "the core exists");
  job.core = job.work.cores.front();
  jobs_.push_back(std::move(job));
  place();
  return jobs_.back().id;
}

/// Places fixed jobs first, then the others, each on the core with the fewest jobs.
void SharedCores::place() {
  std::ranges::fill(busy_, 0);
  const auto chooses = [](const Job& job) {
    return job.work.spread == Spread::OneOf && job.work.cores.size() > 1;
  };
  for (const Job& job : jobs_) {
    if (chooses(job))
      continue;
    for (const std::uint32_t core : job.work.cores)
      ++busy_[core];
  }
  for (Job& job : jobs_) {
    if (!chooses(job))
      continue;
    for (const std::uint32_t core : job.work.cores) {
      if (busy_[core] < busy_[job.core])
        job.core = core;
    }
    ++busy_[job.core];
  }
  const auto others = static_cast<double>(
      std::ranges::count_if(busy_, [](std::int32_t jobs) { return jobs > 0; }) - 1);
  const double share = busy_.size() > 1 ? others / static_cast<double>(busy_.size() - 1) : 0.0;
  for (Job& job : jobs_) {
    if (job.work.spread == Spread::OneOf) {
      job.rate = 1.0 / busy_[job.core] / (1 + (job.work.slowdown - 1) * share);
      continue;
    }
    std::int32_t most = 1;
    for (const std::uint32_t core : job.work.cores)
      most = std::max(most, busy_[core]);
    job.rate = 1.0 / most;
  }
}

std::optional<Time> SharedCores::next_end() const {
  std::optional<Time> next;
  for (const Job& job : jobs_) {
    const Time end = now_ + from_seconds(std::max(0.0, job.left) / job.rate);
    next = next ? std::min(*next, end) : end;
  }
  return next;
}

void SharedCores::advance(Time now) {
  TEMPER_CHECK(now >= now_, "time does not move backwards");
  const double passed = seconds(now - now_);
  for (Job& job : jobs_)
    job.left -= passed * job.rate;
  now_ = now;
}

std::vector<SharedCores::JobId> SharedCores::take_ended() {
  std::vector<JobId> ended;
  for (const Job& job : jobs_) {
    if (job.left <= kDone)
      ended.push_back(job.id);
  }
  if (!ended.empty()) {
    std::erase_if(jobs_, [](const Job& job) { return job.left <= kDone; });
    place();
  }
  return ended;
}

}  // namespace temper::sim_hw
