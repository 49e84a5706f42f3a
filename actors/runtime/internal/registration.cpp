#include "actors/runtime/internal/registration.hpp"

#include "actors/runtime/process.hpp"
#include "actors/transport/wake_up.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace temper::actors::detail {
namespace {

Result<Welcome> accept_welcome(const IncomingMessage& message) {
  if (message.is<Reject>()) {
    TEMPER_TRY(const Reject reject, message.decode<Reject>());
    return invalid_input("rejected by the orchestrator: " + reject.reason);
  }
  return message.decode<Welcome>();
}

/// Why there is no place now; empty for any other message.
std::optional<std::string> may_come_again(const IncomingMessage& message) {
  if (!message.is<Reject>())
    return std::nullopt;
  const auto reject = message.decode<Reject>();
  return reject && reject->again ? std::optional(reject->reason) : std::nullopt;
}

Error refused(const WorkerOptions& options) {
  const Credentials& own = options.credentials;
  return invalid_input(fmt::format(
      "the orchestrator at {} refuses the key {} ({}...): it was revoked, or belongs to another "
      "run; `temper keys list RUN_DIR` shows the accepted keys",
      options.endpoint,
      own.name.empty() ? options.name : own.name,
      own.own.open.substr(0, 10)));
}

}  // namespace

Result<std::optional<Welcome>> register_worker(const WorkerOptions& options,
                                               Connection& connection,
                                               const Clock& clock,
                                               const Log& log) {
  Hello hello = options.hello;
  hello.name = options.name;
  hello.secret = options.credentials.secret;
  hello.pid = ::getpid();
  hello.host = host_name();
  TEMPER_TRY(const WakeUp never, WakeUp::create());
  const Time begin = clock.now();
  const Time deadline = begin + options.registration_deadline;
  Time next_hello = begin;
  std::string waits_for;
  for (Time now = begin; now < deadline; now = clock.now()) {
    if (now >= next_hello) {
      if (options.still_there && !options.still_there()) {
        return Error{ErrorCode::NotFound,
                     fmt::format("the orchestrator at {} is gone", options.endpoint)};
      }
      connection.queue(outgoing(hello));
      next_hello = now + options.hello_interval;
    }
    TEMPER_TRY_STATUS(connection.flush());
    TEMPER_TRY_STATUS(connection.wait(never.fd(), std::min(deadline, next_hello) - now));
    if (connection.refusals() > 0) {  // ZeroMQ does not retry after this
      if (options.on_refused)
        options.on_refused();
      return refused(options);
    }
    for (;;) {
      TEMPER_TRY(const auto message, connection.receive());
      if (!message)
        break;
      if (const auto reason = may_come_again(*message)) {
        if (*reason != waits_for)
          log.info("waiting for a place", {{"why", *reason}});
        waits_for = *reason;
        continue;
      }
      if (message->is<Stop>())
        return std::optional<Welcome>();
      if (message->is<Welcome>() || message->is<Reject>()) {
        TEMPER_TRY(Welcome welcome, accept_welcome(*message));
        if (hello.attached) {
          welcome.epoch_monotonic_ns =
              RealClock().epoch_monotonic_ns() - welcome.now.time_since_epoch().count();
        }
        return std::optional(std::move(welcome));
      }
      log.warning("message dropped",
                  {{"why", "expected actor.welcome first"},
                   {"message", message_name(message->envelope().tag)}});
    }
  }
  return Error{
      ErrorCode::Timeout,
      fmt::format("no actor.welcome from {} within {}; check that the orchestrator is running",
                  options.endpoint,
                  to_text(options.registration_deadline))};
}

}  // namespace temper::actors::detail
