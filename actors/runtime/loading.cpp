#include "actors/runtime/loading.hpp"

#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <utility>

namespace temper::actors {
namespace {

/// A process that sleeps and polls ten times a second uses less than this between two heartbeats.
constexpr Duration kLeastProcessor = std::chrono::milliseconds(1);

/// Process-wide, like processor time.
std::atomic<std::uint64_t> noted{0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

Duration time_on(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0)
    return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::int64_t reads_of_this_process() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_inblock + usage.ru_majflt : 0;
}

}  // namespace

void note_progress() {
  ++noted;
}

bool ProgressMeter::has_progressed() {
  const Duration processor = time_on(CLOCK_PROCESS_CPUTIME_ID) - time_on(CLOCK_THREAD_CPUTIME_ID);
  const std::int64_t reads = reads_of_this_process();
  const std::uint64_t notes = noted;
  const bool worked = processor - std::exchange(processor_, processor) >= kLeastProcessor;
  const bool read = reads != std::exchange(reads_, reads);
  const bool waited = notes != std::exchange(notes_, notes);
  return worked || read || waited;
}

}  // namespace temper::actors
