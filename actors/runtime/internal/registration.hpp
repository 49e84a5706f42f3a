// The worker's connection to the orchestrator, and the registration on it.
#pragma once

#include "actors/runtime/process.hpp"
#include "actors/runtime/worker.hpp"
#include "actors/transport/stream.hpp"

#include <limits>
#include <optional>
#include <utility>

namespace temper::actors::detail {

/// The worker's end of its connection: an outgoing stream, a reassembler, and the time when the
/// orchestrator was last heard.
class Connection {
 public:
  Connection(DealerSocket& socket, const Clock& clock, const Log& log)
      : socket_(&socket), clock_(&clock), log_(&log), heard_(clock.now()) {}

  void queue(OutgoingMessage message) { outgoing_.push(std::move(message)); }
  /// Sends as much as the socket accepts. Errors: InvalidInput for a frame above the limit; Io.
  Status flush() {
    while (const OutgoingStream::Frames* wire = outgoing_.front()) {
      TEMPER_TRY(const bool sent, socket_->try_send(wire->head, wire->body));
      if (!sent)
        break;
      outgoing_.pop();
    }
    return {};
  }
  bool empty() const { return outgoing_.empty(); }

  /// The next complete message except heartbeats and acknowledgments, if there is one. Malformed
  /// messages are logged and skipped. Error: the orchestrator violated the protocol.
  Result<std::optional<IncomingMessage>> receive() {
    using Message = std::optional<IncomingMessage>;
    while (auto received = socket_->try_receive()) {
      auto part = IncomingMessage::parse(*std::move(received));
      if (!part) {
        log_->warning("message dropped", {{"why", part.error().context}});
        continue;
      }
      heard_ = clock_->now();
      if (part->is<Reject>())  // sent outside the sequence, to peers that are not admitted
        return Message(*std::move(part));
      TEMPER_TRY(auto message, reassembler_.add(*part));
      if (part->is<Heartbeat>()) {
        TEMPER_TRY(const Heartbeat beat, part->decode<Heartbeat>());
        last_beat_ = ReceivedHeartbeat{beat.sent, heard_};
        continue;
      }
      if (part->is<Taken>()) {
        TEMPER_TRY(const Taken told, part->decode<Taken>());
        TEMPER_TRY_STATUS(outgoing_.acknowledge(told));
        continue;
      }
      if (const auto told = reassembler_.due_ack())
        queue(outgoing(*told));
      if (message)
        return message;
    }
    return Message();
  }
  /// Queues a heartbeat that also answers the orchestrator's last one.
  void beat(const Clock& of_run, bool loading = false) {
    Heartbeat beat{.resident = resident_memory(), .sent = of_run.now()};
    beat.loading = loading;
    if (last_beat_)
      beat.answers = HeartbeatAnswer{last_beat_->sent, clock_->now() - last_beat_->heard};
    queue(outgoing(beat));
  }
  Time heard() const { return heard_; }
  /// Restarts the measurement of the orchestrator's silence.
  void count_silence_from(Time now) { heard_ = now; }

  /// Blocks until a message can be received or sent, `wake_fd` is readable, or `timeout` has
  /// passed. Error: Io if the socket fails.
  Status wait(int wake_fd, Duration timeout) {
    using Wait = DealerSocket::Wait;
    return socket_->wait(
        outgoing_.front() == nullptr ? Wait::Readable : Wait::ReadableOrWritable, wake_fd, timeout);
  }
  void close(Duration linger) { socket_->close(linger); }
  std::uint64_t refusals() { return socket_->refusals(); }

 private:
  struct ReceivedHeartbeat {
    Time sent{}, heard{};
  };

  DealerSocket* socket_;
  const Clock* clock_;
  const Log* log_;
  OutgoingStream outgoing_;
  Reassembler reassembler_{
      Bytes(std::numeric_limits<Bytes::rep>::max())};  ///< No limit: the orchestrator is trusted.
  Time heard_;
  std::optional<ReceivedHeartbeat> last_beat_;
};

/// Sends actor.hello every second until there is an answer. The returned welcome has the run's
/// clock converted to this host's. Empty if the orchestrator has no more work. Errors: see
/// run_worker().
Result<std::optional<Welcome>> register_worker(const WorkerOptions& options,
                                               Connection& connection,
                                               const Clock& clock,
                                               const Log& log);

}  // namespace temper::actors::detail
