#include "orchestrator/run/virtual/stop_signals.hpp"

#include "actors/asio/asio.hpp"

#include <csignal>

namespace temper::orchestrator {

namespace asio = boost::asio;

struct StopSignals::Impl {
  asio::io_context io{1};
  asio::signal_set signals{io, SIGINT, SIGTERM, SIGUSR1};
  int count = 0;
  bool out_of_time = false;

  Impl() {
    struct sigaction current {};  // nohup ignores it
    if (::sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      signals.add(SIGHUP);
    await();
  }
  void await() {
    signals.async_wait([this](const auto& error, int number) {
      if (error)
        return;
      // A terminal that closes may say so twice, and so may a launcher whose time is up.
      if ((number != SIGHUP && number != SIGUSR1) || count == 0) {
        ++count;
        out_of_time = number == SIGUSR1;
      }
      await();
    });
  }
};

StopSignals::StopSignals() : impl_(std::make_unique<Impl>()) {}
StopSignals::~StopSignals() = default;

int StopSignals::count() {
  impl_->io.poll();
  return impl_->count;
}

bool StopSignals::out_of_time() const {
  return impl_->out_of_time;
}

}  // namespace temper::orchestrator
