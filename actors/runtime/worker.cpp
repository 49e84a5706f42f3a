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

using detail::Line;
using detail::register_worker;

namespace {

/// Messages read before the next look at the clock.
constexpr int kBatch = 256;

/// Reads on, for what the lane is to be told; messages come too late.
Status receive_nothing(Line& line) {
  for (;;) {
    TEMPER_TRY(const auto message, line.receive());
    if (!message)
      return {};
  }
}

/// Everything the I/O thread does after registration.
class IoLoop {
 public:
  struct Ends {
    Line& line;
    Inbox& inbox;
    SendQueue& outbox;
    const std::atomic<bool>& loading;  ///< The role does not take work yet.
  };
  IoLoop(const WorkerOptions& options,
         const Welcome& welcome,
         const Ends& ends,
         const Clock& clock,
         const Log& log)
      : options_(options),
        heartbeat_(welcome.heartbeat),
        timeout_(welcome.heartbeat_timeout),
        of_run_(welcome.epoch_monotonic_ns),
        line_(ends.line),
        inbox_(ends.inbox),
        outbox_(ends.outbox),
        loading_(ends.loading),
        clock_(clock),
        log_(log) {}

  /// Until the work thread has finished; then flushes and disconnects.
  void run() {
    Status status = exchange();
    if (!status) {
      await_work_thread(std::move(status).error());
      return;
    }
    flush();
  }

 private:
  /// Error: the orchestrator is gone, or the socket failed. Returns once the work thread has
  /// finished.
  Status exchange() {
    next_heartbeat_ = clock_.now();
    line_.count_silence_from(next_heartbeat_);
    for (;;) {
      TEMPER_TRY_STATUS(receive());
      SendQueue::Taken taken = outbox_.take();
      for (OutgoingMessage& message : taken.messages)
        line_.queue(std::move(message));
      const Time now = clock_.now();
      if (taken.finished)
        return {};
      if (now - line_.heard() >= timeout_) {
        return Error{ErrorCode::Unavailable,
                     fmt::format("the orchestrator was silent for {}", to_text(timeout_))};
      }
      if (now >= next_heartbeat_) {
        line_.beat(of_run_, loading_ && progress_.has_progressed());
        next_heartbeat_ = now + heartbeat_;
      }
      TEMPER_TRY_STATUS(line_.flush());
      const Time next = std::min(next_heartbeat_, line_.heard() + timeout_);
      TEMPER_TRY_STATUS(line_.wait(outbox_.wake_fd(), next - now));
    }
  }

  /// At most a batch, so that heartbeats leave while much comes.
  Status receive() {
    for (int i = 0; i < kBatch; ++i) {
      TEMPER_TRY(auto message, line_.receive());
      if (!message)
        break;
      if (message->is<Reject>()) {
        TEMPER_TRY(const Reject reject, message->decode<Reject>());
        return Error{reject.again ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
                     "let go by the orchestrator: " + reject.reason};
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

  /// The orchestrator is gone: the role is told, and given up if it does not listen.
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
      if (!line_.wait(outbox_.wake_fd(), patience) || !receive_nothing(line_))
        return;
    }
  }

  void flush() {
    const Time deadline = clock_.now() + options_.flush;
    for (Time now = clock_.now(); now < deadline; now = clock_.now()) {
      if (!line_.flush() || line_.empty() || !line_.wait(outbox_.wake_fd(), deadline - now) ||
          !receive_nothing(line_)) {
        break;
      }
    }
    if (!line_.empty())
      log_.error("messages lost at the end", {{"why", "the orchestrator does not read"}});
    line_.close(std::max(deadline - clock_.now(), Duration::zero()));
  }

  const WorkerOptions& options_;
  const Duration heartbeat_;
  const Duration timeout_;
  const RealClock of_run_;
  Line& line_;
  Inbox& inbox_;
  SendQueue& outbox_;
  const std::atomic<bool>& loading_;
  const Clock& clock_;
  const Log& log_;
  Time next_heartbeat_{};
  ProgressMeter progress_;  ///< Made on the thread that calls run().
};

/// Messages and work in turn, until actor.stop or an error.
Status serve(const WorkerOptions& options, Role& role, Inbox& inbox, Outbox& out) {
  Role::Work pending = Role::Work::Pending;
  for (;;) {
    const Duration patience =
        pending == Role::Work::Pending ? Duration::zero() : options.idle_interval;
    Inbox::Taken taken = inbox.take(patience);
    for (const IncomingMessage& message : taken.messages) {
      if (message.is<Stop>())
        return role.stop(out);
      TEMPER_TRY_STATUS(role.on_message(message, out));
    }
    if (taken.closed)
      return *taken.closed;
    TEMPER_TRY(pending, role.work(out));
  }
}

/// An error that another attempt to build the role would meet again.
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

/// What the work thread has come to.
struct Progress {
  bool built = false;               ///< The role is there.
  std::atomic<bool> loading{true};  ///< It does not take work yet.
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

/// The work thread: an exception that escapes the role becomes the error it ends with.
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
    return Error{ErrorCode::Internal, "an exception of unknown type"};
  }
}

/// Role and socket on one thread, until actor.stop or an error.
Status serve_inline(const Welcome& welcome,
                    const RoleFactory& make_role,
                    Line& line,
                    const Clock& clock) {
  Outbox out([&line](OutgoingMessage message) { line.queue(std::move(message)); });
  TEMPER_TRY(const std::unique_ptr<Role> role, make_role(welcome));
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  out.send(Ready{});
  TEMPER_TRY_STATUS(role->start(out));
  const RealClock of_run(welcome.epoch_monotonic_ns);
  Time next_heartbeat = clock.now();
  line.count_silence_from(next_heartbeat);
  for (;;) {
    for (;;) {
      TEMPER_TRY(const auto message, line.receive());
      if (!message)
        break;
      if (message->is<Stop>())
        return role->stop(out);
      if (!message->is<Welcome>())
        TEMPER_TRY_STATUS(role->on_message(*message, out));
    }
    const Time now = clock.now();
    const Time gone = line.heard() + welcome.heartbeat_timeout;
    if (now >= gone) {
      return Error{
          ErrorCode::Unavailable,
          fmt::format("the orchestrator was silent for {}", to_text(welcome.heartbeat_timeout))};
    }
    if (now >= next_heartbeat) {
      line.beat(of_run);
      next_heartbeat = now + welcome.heartbeat;
    }
    TEMPER_TRY_STATUS(line.flush());
    TEMPER_TRY_STATUS(line.wait(never.fd(), std::min(next_heartbeat, gone) - now));
  }
}

Status run_inline(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Welcome& welcome,
                  Line& line,
                  const Clock& clock,
                  const Log& log) {
  Status status;
  try {
    status = serve_inline(welcome, make_role, line, clock);
  } catch (const std::exception& e) {
    status = error_of(e);
  }
  if (!status) {
    log.error("actor failed", {{"actor", options.name}, {"why", status.error().context}});
    line.queue(outgoing(Failed{.reason = status.error().context}));
  }
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  const Time deadline = clock.now() + options.flush;
  for (Time now = clock.now(); now < deadline; now = clock.now()) {
    if (!line.flush() || line.empty() || !line.wait(never.fd(), deadline - now) ||
        !receive_nothing(line)) {
      break;
    }
  }
  line.close(std::max(deadline - clock.now(), Duration::zero()));
  return status;
}

}  // namespace

Status run_worker(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Clock& clock,
                  const Log& log) {
  TEMPER_TRY(DealerSocket socket,
             DealerSocket::connect(options.endpoint, options.transport, log, options.credentials));
  Line line(socket, clock, log);
  TEMPER_TRY(const auto welcomed, register_worker(options, line, clock, log));
  if (!welcomed)
    return {};
  const Welcome& welcome = *welcomed;
  if (welcome.heartbeat <= Duration::zero() || welcome.heartbeat_timeout <= welcome.heartbeat) {
    return invalid_input(fmt::format("actor.welcome: heartbeat {} with timeout {}",
                                     to_text(welcome.heartbeat),
                                     to_text(welcome.heartbeat_timeout)));
  }
  log.info("registered", {{"actor", options.name}, {"id", welcome.actor}});

  if (options.threads == WorkerOptions::Threads::Inline)
    return run_inline(options, make_role, welcome, line, clock, log);
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
    IoLoop(options, welcome, {line, inbox, queue, progress.loading}, clock, log).run();
  });
  Outbox out([&queue](OutgoingMessage message) { queue.push(std::move(message)); });

  Status status = run_role(options, make_role, welcome, inbox, out, progress);
  if (!status) {
    log.error("actor failed", {{"actor", options.name}, {"why", status.error().context}});
    out.send(Failed{.reason = status.error().context,
                    .permanent = !progress.built && is_permanent(status.error())});
  }
  if (options.relay != nullptr)
    options.relay->end();
  queue.finish();
  io.join();
  return status;
}

}  // namespace temper::actors
