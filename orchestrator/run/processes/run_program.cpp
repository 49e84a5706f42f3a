#include "orchestrator/run/processes/run_program.hpp"

#include "actors/asio/asio.hpp"
#include "orchestrator/run/processes/exit_reason.hpp"
#include "orchestrator/run/processes/spawn.hpp"

#include <fmt/format.h>

#include <csignal>

namespace temper::orchestrator {

using namespace std::chrono_literals;

Status run_program(const ChildSpec& spec,
                   std::string_view what,
                   const std::function<void(std::string_view)>& on_progress,
                   const std::function<bool()>& stopped) {
  boost::asio::io_context io{1};
  std::optional<ChildExit> end;
  Supervisor supervisor(io, [&](const ChildExit& e) {
    end = e;
    io.stop();
  });
  boost::asio::signal_set signals(io, SIGINT, SIGTERM, SIGUSR1);
  struct sigaction current {};  // nohup ignores it
  if (::sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
    signals.add(SIGHUP);
  signals.async_wait([&](auto error, int) {
    if (!error)
      io.stop();
  });
  TEMPER_TRY([[maybe_unused]] const auto pid, supervisor.start(spec));
  while (!end && !io.stopped() && !(stopped && stopped())) {
    io.run_for(200ms);
    if (on_progress)
      on_progress(last_line(log_tail(spec.log, 0)));
  }
  if (!end)
    return Error{ErrorCode::Unavailable, fmt::format("{} was stopped on request", what)};
  if (!end->success) {
    return Error{end->permanent ? ErrorCode::Unsupported : ErrorCode::Internal,
                 fmt::format("{} ended with {}", what, exit_reason(*end))};
  }
  return {};
}

}  // namespace temper::orchestrator
