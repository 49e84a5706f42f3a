#include "actors/task/internal/command_verifier.hpp"

#include "actors/task/internal/command_slot.hpp"
#include "actors/task/internal/no_sigpipe.hpp"
#include "actors/task/internal/probation.hpp"

#include <algorithm>
#include <ctime>
#include <deque>

namespace temper::actors {

namespace {

class CommandVerifier final : public Verifier {
 public:
  CommandVerifier(const SingleVerifier& config, std::unique_ptr<const Clock> clock)
      : config_(config), clock_(std::move(clock)) {}

  Status start() {
    for (std::int32_t i = 0; i < std::max(1, config_.pool); ++i)
      TEMPER_TRY_STATUS(slots_.emplace_back(config_).start());
    return {};
  }

  std::vector<Verdict> judge(std::span<const JudgeRequest> batch) override {
    const NoSigpipe no_sigpipe;
    std::vector<Verdict> verdicts(batch.size());
    std::size_t assigned = 0;
    gave_up_ = false;
    for (std::size_t done = 0; done < batch.size();) {
      const Time now = clock_->now();
      assign(batch, assigned, now);
      const std::size_t before = done;
      for (CommandSlot& slot : slots_) {
        if (slot.is_idle())
          continue;
        const std::size_t sample = slot.sample();
        if (auto verdict = slot.advance(now)) {
          verdicts[sample] = *std::move(verdict);
          ++done;
          if (probation_.fails(verdicts[sample])) {
            give_up(verdicts, sample, now);
            return verdicts;
          }
        }
      }
      if (done == before)
        wait();
    }
    return verdicts;
  }

  bool gave_up() const override { return gave_up_; }

 private:
  /// Fails every response of the batch with the reason of the last failure.
  void give_up(std::vector<Verdict>& verdicts, std::size_t last, Time now) {
    gave_up_ = true;
    for (CommandSlot& slot : slots_) {
      if (!slot.is_idle())
        slot.abandon(now);
    }
    const Verdict why = verdicts[last];
    std::ranges::fill(verdicts, why);
  }

  /// Assigns samples to idle slots. A slot that may not start its process yet is used only if no
  /// other slot is available.
  void assign(std::span<const JudgeRequest> batch, std::size_t& assigned, Time now) {
    const bool any_ready = std::any_of(slots_.begin(), slots_.end(), [&](const CommandSlot& s) {
      return !s.is_idle() || s.is_ready(now);
    });
    for (CommandSlot& slot : slots_) {
      if (assigned < batch.size() && slot.is_idle() && (slot.is_ready(now) || !any_ready)) {
        slot.assign(assigned, batch[assigned], now);
        ++assigned;
      }
    }
  }

  /// Blocks until a process has output or a slot's wake time is reached.
  void wait() {
    fds_.clear();
    Time wake = Time::max();
    for (const CommandSlot& slot : slots_) {
      if (slot.is_idle())
        continue;
      slot.add_to_poll(fds_);
      wake = std::min(wake, slot.wake_time());
    }
    const Duration left = std::max(Duration(0), wake - clock_->now());
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
    ::ppoll(fds_.data(), fds_.size(), &timeout, nullptr);
  }

  const SingleVerifier config_;
  const std::unique_ptr<const Clock> clock_;
  std::deque<CommandSlot> slots_;
  Probation probation_;
  bool gave_up_ = false;
  std::vector<pollfd> fds_;
};

}  // namespace

Result<std::unique_ptr<Verifier>> make_command_verifier(const SingleVerifier& config,
                                                        std::unique_ptr<const Clock> clock) {
  if (config.command.empty())
    return invalid_input("verifier.command: expected a command for kind `command`, found none");
  auto verifier = std::make_unique<CommandVerifier>(config, std::move(clock));
  if (Status started = verifier->start(); !started)
    return std::move(started).error().within("verifier.command");
  return std::unique_ptr<Verifier>(std::move(verifier));
}

}  // namespace temper::actors
