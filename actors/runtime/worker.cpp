#include "actors/runtime/worker.hpp"

#include "actors/runtime/internal/registration.hpp"
#include "actors/runtime/loading.hpp"
#include "actors/runtime/process.hpp"
#include "actors/runtime/queues.hpp"
#include "core/exception_error.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

namespace temper::actors {

using detail::Connection;
using detail::register_worker;

namespace {

/// Messages read before the clock is checked again.
constexpr int kBatch = 256;

/// Keeps reading so that acknowledgments arrive; discards the messages, which are too late.
Status discard_messages(Connection& connection) {
  for (;;) {
    TEMPER_TRY(const auto message, connection.receive());
    if (!message)
      return {};
  }
}

/// The I/O thread's work after registration.
class IoLoop {
 public:
  struct Links {
    Connection& connection;
    Inbox& inbox;
    SendQueue& outbox;
    const std::atomic<bool>& loading;  ///< True while the role is still loading.
  };
  IoLoop(const WorkerOptions& options,
         const Welcome& welcome,
         const Links& links,
         const Clock& clock,
         const Log& log)
      : options_(options),
        heartbeat_(welcome.heartbeat),
        timeout_(welcome.heartbeat_timeout),
        of_run_(welcome.epoch_monotonic_ns),
        connection_(links.connection),
        inbox_(links.inbox),
        outbox_(links.outbox),
        loading_(links.loading),
        clock_(clock),
        log_(log) {}

  /// Runs until the work thread has finished; then flushes and disconnects.
  void run() {
    Status status = exchange();
    if (!status) {
      await_work_thread(std::move(status).error());
      return;
    }
    flush();
  }

 private:
  /// Returns once the work thread has finished. Error: the orchestrator is gone, or the socket
  /// failed.
  Status exchange() {
    next_heartbeat_ = clock_.now();
    connection_.count_silence_from(next_heartbeat_);
    for (;;) {
      TEMPER_TRY_STATUS(receive());
      SendQueue::Batch batch = outbox_.take();
      for (OutgoingMessage& message : batch.messages)
        connection_.queue(std::move(message));
      const Time now = clock_.now();
      if (batch.finished)
        return {};
      if (now - connection_.heard() >= timeout_) {
        return Error{ErrorCode::Unavailable,
                     fmt::format("the orchestrator was silent for {}", to_text(timeout_))};
      }
      if (now >= next_heartbeat_) {
        connection_.beat(of_run_, loading_ && progress_.has_progressed());
        next_heartbeat_ = now + heartbeat_;
      }
      TEMPER_TRY_STATUS(connection_.flush());
      const Time next = std::min(next_heartbeat_, connection_.heard() + timeout_);
      TEMPER_TRY_STATUS(connection_.wait(outbox_.wake_fd(), next - now));
    }
  }

  /// Reads at most one batch, so that heartbeats are sent even under load.
  Status receive() {
    for (int i = 0; i < kBatch; ++i) {
      TEMPER_TRY(auto message, connection_.receive());
      if (!message)
        break;
      if (message->is<Reject>()) {
        TEMPER_TRY(const Reject reject, message->decode<Reject>());
        return Error{reject.again ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
                     "released by the orchestrator: " + reject.reason};
      }
      deliver(*std::move(message));
    }
    return {};
  }

  void deliver(IncomingMessage message) {
    if (message.is<Welcome>() || (options_.relay != nullptr && options_.relay->take(message)))
      return;
    inbox_.push(std::move(message));
  }

  /// The orchestrator is gone: closes the inbox and abandons the role if it does not react.
  void await_work_thread(Error reason) {
    log_.error("connection lost", {{"why", reason.context}});
    if (options_.on_lost)
      options_.on_lost(reason);
    inbox_.close(reason);
    const Time deadline = clock_.now() + options_.abandon_after;
    bool abandoned = false;
    while (!outbox_.take().finished) {
      const Time now = clock_.now();
      if (!abandoned && now >= deadline) {
        abandoned = true;
        if (options_.abandon)
          options_.abandon(reason);
      }
      const Duration patience = abandoned ? options_.abandon_after : deadline - now;
      if (!connection_.wait(outbox_.wake_fd(), patience) || !discard_messages(connection_))
        return;
    }
  }

  void flush() {
    const Time deadline = clock_.now() + options_.flush;
    for (Time now = clock_.now(); now < deadline; now = clock_.now()) {
      if (!connection_.flush() || connection_.empty() ||
          !connection_.wait(outbox_.wake_fd(), deadline - now) || !discard_messages(connection_)) {
        break;
      }
    }
    if (!connection_.empty())
      log_.error("queued messages discarded", {{"why", "the orchestrator is not reading"}});
    connection_.close(std::max(deadline - clock_.now(), Duration::zero()));
  }

  const WorkerOptions& options_;
  const Duration heartbeat_;
  const Duration timeout_;
  const RealClock of_run_;
  Connection& connection_;
  Inbox& inbox_;
  SendQueue& outbox_;
  const std::atomic<bool>& loading_;
  const Clock& clock_;
  const Log& log_;
  Time next_heartbeat_{};
  ProgressMeter progress_;  ///< Created on the thread that calls run().
};

/// Alternates between messages and work until actor.stop or an error.
Status serve(const WorkerOptions& options, Role& role, Inbox& inbox, Outbox& out) {
  Role::Work pending = Role::Work::Pending;
  for (;;) {
    const Duration patience =
        pending == Role::Work::Pending ? Duration::zero() : options.idle_interval;
    Inbox::Batch batch = inbox.take(patience);
    for (const IncomingMessage& message : batch.messages) {
      if (message.is<Stop>())
        return role.stop(out);
      TEMPER_TRY_STATUS(role.on_message(message, out));
    }
    if (batch.closed)
      return *batch.closed;
    TEMPER_TRY(pending, role.work(out));
  }
}

/// True if building the role again would fail in the same way.
bool is_permanent(const Error& error) {
  switch (error.code) {
    case ErrorCode::InvalidInput:
    case ErrorCode::NotFound:
    case ErrorCode::Corrupt:
    case ErrorCode::Unsupported:
      return true;
    default:
      return false;
  }
}

/// `built`: the role was built, so another start may help.
Failed failure_of(const Error& error, bool built) {
  return {.reason = error.context,
          .permanent = !built && is_permanent(error),
          .not_finite = error.code == ErrorCode::NotFinite};
}

/// Progress of the work thread.
struct Progress {
  bool built = false;               ///< The role has been built.
  std::atomic<bool> loading{true};  ///< The role is still loading.
};

Status build_and_serve(const WorkerOptions& options,
                       const RoleFactory& make_role,
                       const Welcome& welcome,
                       Inbox& inbox,
                       Outbox& out,
                       Progress& progress) {
  TEMPER_TRY(const std::unique_ptr<Role> role, make_role(welcome));
  progress.built = true;
  out.send(Ready{});
  TEMPER_TRY_STATUS(role->start(out));
  progress.loading = false;
  return serve(options, *role, inbox, out);
}

/// The work thread. An exception that escapes the role becomes its error.
Status run_role(const WorkerOptions& options,
                const RoleFactory& make_role,
                const Welcome& welcome,
                Inbox& inbox,
                Outbox& out,
                Progress& progress) {
  try {
    return build_and_serve(options, make_role, welcome, inbox, out, progress);
  } catch (const std::exception& e) {
    return error_of(e);
  } catch (...) {
    return Error{ErrorCode::Internal, "internal error: an exception of unknown type"};
  }
}

/// Runs the role and the socket on one thread until actor.stop or an error.
Status serve_inline(const Welcome& welcome,
                    const RoleFactory& make_role,
                    Connection& connection,
                    const Clock& clock) {
  Outbox out([&connection](OutgoingMessage message) { connection.queue(std::move(message)); });
  TEMPER_TRY(const std::unique_ptr<Role> role, make_role(welcome));
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  out.send(Ready{});
  TEMPER_TRY_STATUS(role->start(out));
  const RealClock of_run(welcome.epoch_monotonic_ns);
  Time next_heartbeat = clock.now();
  connection.count_silence_from(next_heartbeat);
  for (;;) {
    for (;;) {
      TEMPER_TRY(const auto message, connection.receive());
      if (!message)
        break;
      if (message->is<Stop>())
        return role->stop(out);
      if (!message->is<Welcome>())
        TEMPER_TRY_STATUS(role->on_message(*message, out));
    }
    const Time now = clock.now();
    const Time gone = connection.heard() + welcome.heartbeat_timeout;
    if (now >= gone) {
      return Error{
          ErrorCode::Unavailable,
          fmt::format("the orchestrator was silent for {}", to_text(welcome.heartbeat_timeout))};
    }
    if (now >= next_heartbeat) {
      connection.beat(of_run);
      next_heartbeat = now + welcome.heartbeat;
    }
    TEMPER_TRY_STATUS(connection.flush());
    TEMPER_TRY_STATUS(connection.wait(never.fd(), std::min(next_heartbeat, gone) - now));
  }
}

Status run_inline(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Welcome& welcome,
                  Connection& connection,
                  const Clock& clock,
                  const Log& log) {
  Status status;
  try {
    status = serve_inline(welcome, make_role, connection, clock);
  } catch (const std::exception& e) {
    status = error_of(e);
  }
  if (!status) {
    log.error("actor failed", {{"actor", options.name}, {"why", status.error().context}});
    connection.queue(outgoing(failure_of(status.error(), true)));
  }
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  const Time deadline = clock.now() + options.flush;
  for (Time now = clock.now(); now < deadline; now = clock.now()) {
    if (!connection.flush() || connection.empty() || !connection.wait(never.fd(), deadline - now) ||
        !discard_messages(connection)) {
      break;
    }
  }
  connection.close(std::max(deadline - clock.now(), Duration::zero()));
  return status;
}

}  // namespace

Status run_worker(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Clock& clock,
                  const Log& log) {
  TEMPER_TRY(DealerSocket socket,
             DealerSocket::connect(options.endpoint, options.transport, log, options.credentials));
  Connection connection(socket, clock, log);
  TEMPER_TRY(const auto welcomed, register_worker(options, connection, clock, log));
  if (!welcomed)
    return {};
  const Welcome& welcome = *welcomed;
  if (welcome.heartbeat <= Duration::zero() || welcome.heartbeat_timeout <= welcome.heartbeat) {
    return invalid_input(
        fmt::format("actor.welcome: expected 0 < heartbeat < heartbeat_timeout, found {} and {}",
                    to_text(welcome.heartbeat),
                    to_text(welcome.heartbeat_timeout)));
  }
  log.info("registered", {{"actor", options.name}, {"id", welcome.actor}});

  if (options.threads == WorkerOptions::Threads::Inline)
    return run_inline(options, make_role, welcome, connection, clock, log);
  TEMPER_TRY(WakeUp wake, WakeUp::create());
  Inbox inbox;
  SendQueue queue(std::move(wake));
  if (options.relay != nullptr) {
    options.relay->begin({[&inbox](IncomingMessage message) { inbox.push(std::move(message)); },
                          [&queue](OutgoingMessage message) { queue.push(std::move(message)); }},
                         welcome.relay_timeout);
  }
  Progress progress;
  std::thread io([&] {
    IoLoop(options, welcome, {connection, inbox, queue, progress.loading}, clock, log).run();
  });
  const auto send = [&queue](OutgoingMessage message) { queue.push(std::move(message)); };
  Outbox out([&options, &send](OutgoingMessage message) {
    if (options.relay != nullptr)
      return options.relay->publish(std::move(message), send);
    send(std::move(message));
  });

  Status status = run_role(options, make_role, welcome, inbox, out, progress);
  if (!status) {
    log.error("actor failed", {{"actor", options.name}, {"why", status.error().context}});
    out.send(failure_of(status.error(), progress.built));
  }
  if (options.relay != nullptr)
    options.relay->end();
  queue.finish();
  io.join();
  return status;
}

}  // namespace temper::actors
