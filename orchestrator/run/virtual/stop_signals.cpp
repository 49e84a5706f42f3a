#include "orchestrator/run/virtual/stop_signals.hpp"

#include "actors/asio/asio.hpp"

#include <csignal>

namespace temper::orchestrator {

namespace asio = boost::asio;

struct StopSignals::Impl {
  asio::io_context io{1};
  asio::signal_set signals{io, SIGINT, SIGTERM};
  int count = 0;

  Impl() {
    struct sigaction current {};  // nohup ignores it, and means it
    if (::sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      signals.add(SIGHUP);
    await();
  }
  void await() {
    signals.async_wait([this](const auto& error, int number) {
      if (error)
        return;
      if (number != SIGHUP || count == 0)  // a terminal that closes may say so twice
        ++count;
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

}  // namespace temper::orchestrator
