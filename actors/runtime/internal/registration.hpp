// How a worker comes to its run: the connection, and what is said on it until there is a welcome.
#pragma once

#include "actors/runtime/process.hpp"
#include "actors/runtime/worker.hpp"
#include "actors/transport/stream.hpp"

#include <limits>
#include <optional>
#include <utility>

namespace temper::actors::detail {

/// The worker's end of its connection: a lane out, an intake, and when the orchestrator was heard.
class Line {
 public:
  Line(DealerSocket& socket, const Clock& clock, const Log& log)
      : socket_(&socket), clock_(&clock), log_(&log), heard_(clock.now()) {}

  void queue(OutgoingMessage message) { outgoing_.push(std::move(message)); }
  /// Sends what fits.
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

  /// The next whole message but heartbeats, if it is there; malformed ones are logged and skipped.
  /// Error: the orchestrator sent pieces that do not fit together.
  Result<std::optional<IncomingMessage>> receive() {
    using Message = std::optional<IncomingMessage>;
    while (auto received = socket_->try_receive()) {
      auto part = IncomingMessage::parse(*std::move(received));
      if (!part) {
        log_->warning("message dropped", {{"why", part.error().context}});
        continue;
      }
      heard_ = clock_->now();
      if (part->is<Reject>())  // comes outside the sequence, to who is not admitted any more
        return Message(*std::move(part));
      TEMPER_TRY(auto message, reassembler_.add(*part));
      if (part->is<Heartbeat>()) {
        TEMPER_TRY(const Heartbeat beat, part->decode<Heartbeat>());
        last_beat_ = HeardBeat{beat.sent, heard_};
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
  /// A sign of life for the orchestrator, and an answer to its last one.
  void beat(const Clock& of_run, bool loading = false) {
    Heartbeat beat{.resident = resident_memory(), .sent = of_run.now()};
    beat.loading = loading;
    if (last_beat_)
      beat.answers = HeartbeatAnswer{last_beat_->sent, clock_->now() - last_beat_->heard};
    queue(outgoing(beat));
  }
  Time heard() const { return heard_; }
  /// From here on it is silent.
  void count_silence_from(Time now) { heard_ = now; }

  Status wait(int wake_fd, Duration timeout) {
    using Wait = DealerSocket::Wait;
    return socket_->wait(
        outgoing_.front() == nullptr ? Wait::Readable : Wait::ReadableOrWritable, wake_fd, timeout);
  }
  void close(Duration linger) { socket_->close(linger); }
  std::uint64_t refusals() { return socket_->refusals(); }

 private:
  struct HeardBeat {
    Time sent{}, heard{};
  };

  DealerSocket* socket_;
  const Clock* clock_;
  const Log* log_;
  OutgoingStream outgoing_;
  Reassembler reassembler_{
      Bytes(std::numeric_limits<Bytes::rep>::max())};  ///< The orchestrator has what it sends.
  Time heard_;
  std::optional<HeardBeat> last_beat_;
};

/// Says actor.hello every second. In the welcome the run's clock is this host's. None: there is no
/// work any more. Errors: as run_worker() has
/// them.
Result<std::optional<Welcome>> register_worker(const WorkerOptions& options,
                                               Line& line,
                                               const Clock& clock,
                                               const Log& log);

}  // namespace temper::actors::detail
