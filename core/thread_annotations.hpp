// Locks that clang's -Wthread-safety can check; under gcc the annotations vanish. State shared by
// threads lives beside a Mutex and says so: `std::deque<int> queue_ TEMPER_GUARDED_BY(mutex_);`
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

/// Holds the mutex for its scope, and waits with it: conditions are re-checked by the caller in a
/// loop, which keeps them inside the analysis.
class TEMPER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TEMPER_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() TEMPER_RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  /// Returns when notified, and sometimes for no reason.
  void wait(std::condition_variable& changed) { changed.wait(lock_); }
  /// Waits until notified, but not longer than `timeout`.
  void wait_for(std::condition_variable& changed, Duration timeout) {
    changed.wait_for(lock_, timeout);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace temper
