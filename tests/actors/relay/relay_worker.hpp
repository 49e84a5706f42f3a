// A worker with a relay, for tests that act as its role and its orchestrator.
#pragma once

#include "actors/relay/relay.hpp"
#include "actors/shared_memory/chunks.hpp"
#include "actors/shared_memory/shared_buffer.hpp"
#include "actors/transport/credentials.hpp"
#include "core/thread_annotations.hpp"
#include "tests/actors/transport/defaults.hpp"
#include "tests/support/transport.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace temper::actors {

/// Messages of a relay to its role or to the orchestrator.
class RelayMessages {
 public:
  void add(IncomingMessage message) {
    const MutexLock lock(mutex_);
    said_.push_back(std::move(message));
    changed_.notify_all();
  }
  /// The next message; fails the test after a timeout.
  std::optional<IncomingMessage> next() {
    MutexLock lock(mutex_);
    const RealClock clock;
    while (said_.empty()) {
      if (clock.now() >= Time(test::kPatience))
        return std::nullopt;
      lock.wait_for(changed_, test::kPatience);
    }
    IncomingMessage first = std::move(said_.front());
    said_.pop_front();
    return first;
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<IncomingMessage> said_ TEMPER_GUARDED_BY(mutex_);
};

/// A worker with a relay; the test acts as its orchestrator and its role.
struct RelayWorker {
  explicit RelayWorker(Duration timeout = std::chrono::seconds(10))
      : relay(Relay::open("tcp://127.0.0.1:9", TransportConfig{}, clock, kNoLog).value()) {
    relay->begin(
        {[this](IncomingMessage m) { role.add(std::move(m)); },
         [this](OutgoingMessage m) { orchestrator.add(IncomingMessage::from(std::move(m))); }},
        timeout);
  }
  template <class M>
  bool take(const M& message) {
    return relay->take(IncomingMessage::from(outgoing(message)));
  }

  /// Expects that the role gets the image in memory of this process.
  void expect_image(const std::vector<std::byte>& image) {
    const auto given = role.next();
    ASSERT_TRUE(given && given->is<StageWeights>());
    const auto mapped = MappedBuffer::open(given->decode<StageWeights>()->weights);
    ASSERT_TRUE(mapped.has_value());
    EXPECT_TRUE(std::ranges::equal(mapped->bytes(), image));
  }

  RealClock clock;
  RelayMessages role, orchestrator;
  std::unique_ptr<Relay> relay;
};

}  // namespace temper::actors
