// The two queues between the threads of a worker: what arrived, for the work thread, and what is to
// be sent, for the I/O thread. Both are first in, first out. What bounds them is the orchestrator,
// which grants an actor only so much work at a time.
#pragma once

#include "actors/transport/message.hpp"
#include "actors/transport/wake_up.hpp"
#include "core/thread_annotations.hpp"

#include <deque>

namespace temper::actors {

class Inbox {
 public:
  void push(IncomingMessage message);
  /// Nothing will come any more, for this reason; what is queued stays.
  void close(Error reason);

  struct Taken {
    std::deque<IncomingMessage> messages;
    std::optional<Error> closed;
  };
  /// Everything queued; waits up to `timeout` while there is nothing.
  Taken take(Duration timeout);

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<IncomingMessage> messages_ TEMPER_GUARDED_BY(mutex_);
  std::optional<Error> closed_ TEMPER_GUARDED_BY(mutex_);
};

class SendQueue {
 public:
  explicit SendQueue(WakeUp wake) : wake_(std::move(wake)) {}

  void push(OutgoingMessage message);
  /// Nothing more will be pushed: the I/O thread sends the rest and ends.
  void finish();

  struct Taken {
    std::deque<OutgoingMessage> messages;
    bool finished = false;
  };
  /// Everything queued; does not wait.
  Taken take();
  /// Readable when take() has something new to tell.
  int wake_fd() const { return wake_.fd(); }

 private:
  Mutex mutex_;
  std::deque<OutgoingMessage> messages_ TEMPER_GUARDED_BY(mutex_);
  bool finished_ TEMPER_GUARDED_BY(mutex_) = false;
  WakeUp wake_;
};

}  // namespace temper::actors
