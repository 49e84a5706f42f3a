// Mutexes that clang's -Wthread-safety can check; under gcc the annotations expand to nothing.
// Shared state is declared next to its Mutex and names it: `std::deque<int> queue_
// TEMPER_GUARDED_BY(mutex_);`
#pragma once

#include "core/units.hpp"

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define TEMPER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TEMPER_THREAD_ATTRIBUTE(x)
#endif

#define TEMPER_CAPABILITY(x) TEMPER_THREAD_ATTRIBUTE(capability(x))
#define TEMPER_SCOPED_CAPABILITY TEMPER_THREAD_ATTRIBUTE(scoped_lockable)
#define TEMPER_GUARDED_BY(x) TEMPER_THREAD_ATTRIBUTE(guarded_by(x))
#define TEMPER_REQUIRES(...) TEMPER_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TEMPER_ACQUIRE(...) TEMPER_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TEMPER_RELEASE(...) TEMPER_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))

namespace temper {

class TEMPER_CAPABILITY("mutex") Mutex {
 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds the mutex for its scope. Callers re-check their condition in a loop around wait(), which
/// keeps the condition visible to the analysis.
class TEMPER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TEMPER_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() TEMPER_RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  /// Returns when notified; may wake up spuriously.
  void wait(std::condition_variable& changed) { changed.wait(lock_); }
  /// Returns when notified or after `timeout`.
  void wait_for(std::condition_variable& changed, Duration timeout) {
    changed.wait_for(lock_, timeout);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace temper
