// The Asio objects of a live driver, and the signals that it is stopped by.
#pragma once

#include "actors/asio/asio.hpp"
#include "orchestrator/run/live/live_driver.hpp"

#include <csignal>

namespace temper::orchestrator {

struct LiveDriver::Loop {
  boost::asio::io_context io{1};
  boost::asio::steady_timer deadline{io};
  boost::asio::steady_timer tick{io};
  boost::asio::signal_set signals{io, SIGINT, SIGTERM, SIGUSR1};

  Time bound_logs_at{};  ///< When the workers' logs are next cut to size.

  Loop() {
    struct sigaction current {};  // under nohup it is ignored, and stays so
    if (::sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      signals.add(SIGHUP);
  }
};

}  // namespace temper::orchestrator
