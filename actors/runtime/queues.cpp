#include "actors/runtime/queues.hpp"

#include <utility>

namespace temper::actors {

void Inbox::push(IncomingMessage message) {
  {
    const MutexLock lock(mutex_);
    messages_.push_back(std::move(message));
  }
  changed_.notify_one();
}

void Inbox::close(Error reason) {
  {
    const MutexLock lock(mutex_);
    if (!closed_)
      closed_ = std::move(reason);
  }
  changed_.notify_one();
}

Inbox::Batch Inbox::take(Duration timeout) {
  MutexLock lock(mutex_);
  if (messages_.empty() && !closed_ && timeout > Duration::zero())
    lock.wait_for(changed_, timeout);
  return {.messages = std::exchange(messages_, {}), .closed = closed_};
}

void SendQueue::push(OutgoingMessage message) {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    first = messages_.empty();
    messages_.push_back(std::move(message));
  }
  if (first)
    wake_.notify();
}

void SendQueue::finish() {
  {
    const MutexLock lock(mutex_);
    finished_ = true;
  }
  wake_.notify();
}

SendQueue::Batch SendQueue::take() {
  wake_.clear();  // Cleared first, so that a push after it notifies again.
  const MutexLock lock(mutex_);
  return {.messages = std::exchange(messages_, {}), .finished = finished_};
}

}  // namespace temper::actors
