#include "actors/runtime/worker.hpp"

#include "actors/runtime/process.hpp"
#include "actors/runtime/queues.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace temper::actors {
namespace {

/// Numbers the messages of one sender and keeps those that do not fit into the socket yet.
class Sender {
 public:
  explicit Sender(DealerSocket& socket) : socket_(&socket) {}

  void queue(OutgoingMessage message) { waiting_.push_back(std::move(message)); }
  /// Sends what fits.
  Status flush() {
    while (!waiting_.empty()) {
      OutgoingMessage& next = waiting_.front();
      TEMPER_TRY(const bool sent, socket_->try_send(encode_head(next, sequence_ + 1), next.body));
      if (!sent)
        break;
      ++sequence_;
      waiting_.pop_front();
    }
    return {};
  }
  bool empty() const { return waiting_.empty(); }

 private:
  DealerSocket* socket_;
  std::deque<OutgoingMessage> waiting_;
  std::uint64_t sequence_ = 0;
};

/// The next message; malformed ones are logged and skipped.
std::optional<IncomingMessage> receive(DealerSocket& socket, const Log& log) {
  while (auto received = socket.try_receive()) {
    auto message = IncomingMessage::parse(*std::move(received));
    if (message)
      return *std::move(message);
    log.warning("message dropped", {{"why", message.error().context}});
  }
  return std::nullopt;
}

Result<Welcome> accept_welcome(const IncomingMessage& message) {
  if (message.is<Reject>()) {
    TEMPER_TRY(const Reject reject, message.decode<Reject>());
    return invalid_input("rejected by the orchestrator: " + reject.reason);
  }
  return message.decode<Welcome>();
}

Result<Welcome> register_worker(const WorkerOptions& options,
                                DealerSocket& socket,
                                Sender& sender,
                                const Clock& clock,
                                const Log& log) {
  const Hello hello{
      .name = options.name, .secret = options.secret, .pid = ::getpid(), .host = host_name()};
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  const Time deadline = clock.now() + options.registration_deadline;
  Time next_hello = clock.now();
  for (Time now = clock.now(); now < deadline; now = clock.now()) {
    if (now >= next_hello) {
      sender.queue(outgoing(hello));
      next_hello = now + options.hello_interval;
    }
    TEMPER_TRY_STATUS(sender.flush());
    TEMPER_TRY_STATUS(socket.wait(
        DealerSocket::Wait::Readable, never.fd(), std::min(deadline, next_hello) - now));
    while (auto message = receive(socket, log)) {
      if (message->is<Welcome>() || message->is<Reject>())
        return accept_welcome(*message);
      log.warning(
          "message dropped",
          {{"why", "before actor.welcome"}, {"message", message_name(message->envelope().tag)}});
    }
  }
  return Error{ErrorCode::Timeout,
               fmt::format("no actor.welcome from {} within {}: is the orchestrator running?",
                           options.endpoint,
                           to_text(options.registration_deadline))};
}

/// Everything the I/O thread does after registration.
class IoLoop {
 public:
  struct Ends {
    DealerSocket& socket;
    Sender& sender;
    Inbox& inbox;
    SendQueue& outbox;
  };
  IoLoop(const WorkerOptions& options,
         const Welcome& welcome,
         const Ends& ends,
         const Clock& clock,
         const Log& log)
      : options_(options),
        heartbeat_(welcome.heartbeat),
        timeout_(welcome.heartbeat_timeout),
        socket_(ends.socket),
        sender_(ends.sender),
        inbox_(ends.inbox),
        outbox_(ends.outbox),
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
    last_heard_ = clock_.now();
    next_heartbeat_ = last_heard_;
    for (;;) {
      while (auto message = receive(socket_, log_)) {
        last_heard_ = clock_.now();
        deliver(*std::move(message));
      }
      SendQueue::Taken taken = outbox_.take();
      for (OutgoingMessage& message : taken.messages)
        sender_.queue(std::move(message));
      const Time now = clock_.now();
      if (taken.finished)
        return {};
      if (now - last_heard_ >= timeout_) {
        return Error{ErrorCode::Unavailable,
                     fmt::format("the orchestrator was silent for {}", to_text(timeout_))};
      }
      if (now >= next_heartbeat_) {
        sender_.queue(outgoing(Heartbeat{.resident = resident_memory()}));
        next_heartbeat_ = now + heartbeat_;
      }
      TEMPER_TRY_STATUS(sender_.flush());
      TEMPER_TRY_STATUS(wait(std::min(next_heartbeat_, last_heard_ + timeout_) - now));
    }
  }

  void deliver(IncomingMessage message) {
    const bool for_role = !message.is<Heartbeat>() && !message.is<Welcome>();
    if (for_role)
      inbox_.push(std::move(message));
  }

  Status wait(Duration timeout) {
    using Wait = DealerSocket::Wait;
    return socket_.wait(
        sender_.empty() ? Wait::Readable : Wait::ReadableOrWritable, outbox_.wake_fd(), timeout);
  }

  /// The orchestrator is gone: the role is told, and given up if it does not listen.
  void await_work_thread(Error reason) {
    log_.error("connection lost", {{"why", reason.context}});
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
      if (!socket_.wait(DealerSocket::Wait::Readable, outbox_.wake_fd(), patience))
        return;
      while (receive(socket_, log_)) {
      }
    }
  }

  void flush() {
    const Time deadline = clock_.now() + options_.flush;
    for (Time now = clock_.now(); now < deadline; now = clock_.now()) {
      if (!sender_.flush() || sender_.empty() || !wait(deadline - now))
        break;
      while (receive(socket_, log_)) {
      }
    }
    if (!sender_.empty())
      log_.error("messages lost at the end", {{"why", "the orchestrator does not read"}});
    socket_.close(std::max(deadline - clock_.now(), Duration::zero()));
  }

  const WorkerOptions& options_;
  const Duration heartbeat_;
  const Duration timeout_;
  DealerSocket& socket_;
  Sender& sender_;
  Inbox& inbox_;
  SendQueue& outbox_;
  const Clock& clock_;
  const Log& log_;
  Time last_heard_{};
  Time next_heartbeat_{};
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

Status build_and_serve(const WorkerOptions& options,
                       const RoleFactory& make_role,
                       const Welcome& welcome,
                       Inbox& inbox,
                       Outbox& out) {
  TEMPER_TRY(const std::unique_ptr<Role> role, make_role(welcome));
  out.send(Ready{});
  TEMPER_TRY_STATUS(role->start(out));
  return serve(options, *role, inbox, out);
}

/// The work thread: an exception that escapes the role becomes the error it ends with.
Status run_role(const WorkerOptions& options,
                const RoleFactory& make_role,
                const Welcome& welcome,
                Inbox& inbox,
                Outbox& out) {
  try {
    return build_and_serve(options, make_role, welcome, inbox, out);
  } catch (const std::exception& e) {
    return Error{ErrorCode::Internal, e.what()};
  } catch (...) {
    return Error{ErrorCode::Internal, "an exception of unknown type"};
  }
}

/// Role and socket on one thread, until actor.stop or an error.
Status serve_inline(const Welcome& welcome,
                    const RoleFactory& make_role,
                    DealerSocket& socket,
                    Sender& sender,
                    const Clock& clock,
                    const Log& log) {
  Outbox out([&sender](OutgoingMessage message) { sender.queue(std::move(message)); });
  TEMPER_TRY(const std::unique_ptr<Role> role, make_role(welcome));
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  out.send(Ready{});
  TEMPER_TRY_STATUS(role->start(out));
  Time last_heard = clock.now();
  Time next_heartbeat = last_heard;
  for (;;) {
    while (auto message = receive(socket, log)) {
      last_heard = clock.now();
      if (message->is<Stop>())
        return role->stop(out);
      if (!message->is<Heartbeat>() && !message->is<Welcome>())
        TEMPER_TRY_STATUS(role->on_message(*message, out));
    }
    const Time now = clock.now();
    const Time gone = last_heard + welcome.heartbeat_timeout;
    if (now >= gone) {
      return Error{
          ErrorCode::Unavailable,
          fmt::format("the orchestrator was silent for {}", to_text(welcome.heartbeat_timeout))};
    }
    if (now >= next_heartbeat) {
      sender.queue(outgoing(Heartbeat{.resident = resident_memory()}));
      next_heartbeat = now + welcome.heartbeat;
    }
    TEMPER_TRY_STATUS(sender.flush());
    using Wait = DealerSocket::Wait;
    TEMPER_TRY_STATUS(socket.wait(sender.empty() ? Wait::Readable : Wait::ReadableOrWritable,
                                  never.fd(),
                                  std::min(next_heartbeat, gone) - now));
  }
}

Status run_inline(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Welcome& welcome,
                  DealerSocket& socket,
                  Sender& sender,
                  const Clock& clock,
                  const Log& log) {
  Status status;
  try {
    status = serve_inline(welcome, make_role, socket, sender, clock, log);
  } catch (const std::exception& e) {
    status = Error{ErrorCode::Internal, e.what()};
  }
  if (!status) {
    log.error("actor failed", {{"actor", options.name}, {"why", status.error().context}});
    sender.queue(outgoing(Failed{.reason = status.error().context}));
  }
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  const Time deadline = clock.now() + options.flush;
  for (Time now = clock.now(); now < deadline; now = clock.now()) {
    if (!sender.flush() || sender.empty() ||
        !socket.wait(DealerSocket::Wait::ReadableOrWritable, never.fd(), deadline - now)) {
      break;
    }
    while (receive(socket, log)) {
    }
  }
  socket.close(std::max(deadline - clock.now(), Duration::zero()));
  return status;
}

}  // namespace

Status run_worker(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Clock& clock,
                  const Log& log) {
  TEMPER_TRY(DealerSocket socket, DealerSocket::connect(options.endpoint, options.transport, log));
  Sender sender(socket);
  TEMPER_TRY(const Welcome welcome, register_worker(options, socket, sender, clock, log));
  if (welcome.heartbeat <= Duration::zero() || welcome.heartbeat_timeout <= welcome.heartbeat) {
    return invalid_input(fmt::format("actor.welcome: heartbeat {} with timeout {}",
                                     to_text(welcome.heartbeat),
                                     to_text(welcome.heartbeat_timeout)));
  }
  log.info("registered", {{"actor", options.name}, {"id", welcome.actor}});

  if (options.threads == WorkerOptions::Threads::Inline)
    return run_inline(options, make_role, welcome, socket, sender, clock, log);
  TEMPER_TRY(WakeUp wake, WakeUp::create());
  Inbox inbox;
  SendQueue queue(std::move(wake));
  IoLoop loop(options, welcome, {socket, sender, inbox, queue}, clock, log);
  std::thread io([&loop] { loop.run(); });
  Outbox out([&queue](OutgoingMessage message) { queue.push(std::move(message)); });

  Status status = run_role(options, make_role, welcome, inbox, out);
  if (!status) {
    log.error("actor failed", {{"actor", options.name}, {"why", status.error().context}});
    out.send(Failed{.reason = status.error().context});
  }
  queue.finish();
  io.join();
  return status;
}

}  // namespace temper::actors
