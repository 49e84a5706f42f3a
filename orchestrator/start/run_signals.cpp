#include "orchestrator/start/run_signals.hpp"

#include "actors/asio/asio.hpp"

#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

namespace temper::orchestrator {

struct RunSignals::Impl {
  explicit Impl(std::function<void(int)> e) : end(std::move(e)) {
    struct sigaction current {};  // nohup ignores SIGHUP.
    if (::sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      signals.add(SIGHUP);
    await();
    thread = std::thread([this] { io.run(); });
  }
  ~Impl() {
    io.stop();
    thread.join();
  }

  void await() {
    signals.async_wait([this](const auto& error, int number) {
      if (error)
        return;
      {
        const std::lock_guard guard(mutex);
        came = number;
        end_if_startup();
      }
      await();
    });
  }
  void end_if_startup() {
    if (phase == Phase::Startup && came != 0)
      end(came);
  }

  const std::function<void(int)> end;
  boost::asio::io_context io{1};
  boost::asio::signal_set signals{io, SIGINT, SIGTERM, SIGUSR1};
  std::mutex mutex;
  Phase phase = Phase::Startup;
  int came = 0;  ///< Last signal; 0: none.
  std::thread thread;
};

RunSignals::RunSignals(std::function<void(int)> end)
    : impl_(std::make_unique<Impl>(std::move(end))) {}
RunSignals::~RunSignals() = default;

void RunSignals::enter(Phase phase) {
  const std::lock_guard guard(impl_->mutex);
  impl_->phase = phase;
  impl_->end_if_startup();
}

bool RunSignals::has_come() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->came != 0;
}

}  // namespace temper::orchestrator
