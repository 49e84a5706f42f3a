// The two FIFO queues between the threads of a worker: received messages for the work thread, and
// outgoing messages for the I/O thread. They have no limit of their own: the orchestrator bounds
// the work that it assigns to an actor. Thread-safe.
#pragma once

#include "actors/transport/message.hpp"
#include "actors/transport/wake_up.hpp"
#include "core/thread_annotations.hpp"

#include <deque>

namespace temper::actors {

class Inbox {
 public:
  void push(IncomingMessage message);
  /// No more messages will arrive, for this reason; queued messages stay.
  void close(Error reason);

  struct Batch {
    std::deque<IncomingMessage> messages;
    std::optional<Error> closed;
  };
  /// Takes everything queued; waits up to `timeout` if the queue is empty.
  Batch take(Duration timeout);

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
  /// No more messages will be pushed; the I/O thread sends the rest and ends.
  void finish();

  struct Batch {
    std::deque<OutgoingMessage> messages;
    bool finished = false;
  };
  /// Takes everything queued; does not block.
  Batch take();
  /// Readable when take() has something new.
  int wake_fd() const { return wake_.fd(); }

 private:
  Mutex mutex_;
  std::deque<OutgoingMessage> messages_ TEMPER_GUARDED_BY(mutex_);
  bool finished_ TEMPER_GUARDED_BY(mutex_) = false;
  WakeUp wake_;
};

}  // namespace temper::actors
