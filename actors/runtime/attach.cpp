#include "actors/runtime/attach.hpp"

#include "actors/runtime/place.hpp"
#include "actors/runtime/process.hpp"
#include "core/msgpack.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

namespace temper::actors {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(200);  ///< Interval at which the
                                                                    ///< endpoint file is polled.
/// Longest step of the role that may still run after the orchestrator was lost.
constexpr Duration kLongestWork = std::chrono::minutes(10);
/// How long a key must be refused before the worker gives up: the orchestrator may have just
/// started, or not have read the new key yet.
constexpr Duration kRefusedFor = std::chrono::seconds(3);
constexpr int kTerminated = 143;

std::atomic<bool> asked_to_end{false};  // NOLINT: accessed by a signal handler

void on_end_signal(int) {
  asked_to_end = true;
}

/// The role of an attached worker, which outlives the connection that it was created for.
class RetainedRole final : public Role {
 public:
  explicit RetainedRole(std::shared_ptr<Role> role) : role_(std::move(role)) {}
  Status start(Outbox& out) override { return role_->start(out); }
  Status on_message(const IncomingMessage& m, Outbox& out) override {
    return role_->on_message(m, out);
  }
  Result<Work> work(Outbox& out) override {
    if (!asked_to_end)
      return role_->work(out);
    out.send(Left{"terminated by a signal"});
    return Error{ErrorCode::Unavailable, "terminated by a signal"};
  }
  Status stop(Outbox& out) override {
    TEMPER_TRY_STATUS(role_->stop(out));
    out.send(Left{"stopped"});
    return {};
  }

 private:
  std::shared_ptr<Role> role_;
};

/// The part of the configuration that decides whether a loaded role can be reused.
std::string reusable_config(RoleConfig role) {
  role.resume_from.clear();
  role.version = {};
  return encode(role);
}

class Attachment {
 public:
  Attachment(const ActorArguments& arguments,
             WorkerOptions options,
             const RoleFactory& make_role,
             const Clock& clock,
             const Log& log)
      : is_file_(arguments.connect.find("://") == std::string::npos),
        connect_(arguments.connect),
        make_role_(make_role),
        options_(std::move(options)),
        clock_(clock),
        log_(log) {}

  Result<int> run(Duration patience) {
    options_.hello.attached = true;
    options_.hello.run = options_.credentials.run;
    options_.on_lost = [this](const Error&) { lost_ = true; };
    options_.on_refused = [this] { refused_ = true; };
    options_.still_there = [this] { return is_there(); };
    Time deadline = clock_.now() + patience;
    for (;;) {
      TEMPER_TRY(const bool found, find_run(deadline));
      if (!found)
        return asked_to_end ? kTerminated : 0;
      if (relay_ == nullptr)
        open_relay();
      options_.registration_deadline = deadline - clock_.now();
      if (std::exchange(announced_, options_.endpoint) != options_.endpoint) {
        log_.info("asking the run for a place",
                  {{"orchestrator", options_.endpoint},
                   {"waits", to_text(options_.registration_deadline)}});
      }
      lost_ = refused_ = false;
      const Status status = run_worker(
          options_, [this](const Welcome& w) { return make(w); }, clock_, log_);
      if (asked_to_end)
        return kTerminated;
      if (status)
        return 0;
      if (refused_ && refused_duration() < kRefusedFor)
        continue;
      const bool moved = !lost_ && status.error().code == ErrorCode::NotFound;
      if (!moved && !(lost_ && status.error().code == ErrorCode::Unavailable))
        return status.error();
      if (lost_) {
        deadline = clock_.now() + grace_;
        log_.warning("looking for the run's next orchestrator", {{"for", to_text(grace_)}});
      }
    }
  }

 private:
  /// Without a relay, weights come from the orchestrator only.
  void open_relay() {
    auto relay = Relay::open(options_.endpoint, options_.transport, clock_, log_);
    if (!relay) {
      log_.warning("this worker does not relay weights", {{"why", relay.error().context}});
      return;
    }
    relay_ = *std::move(relay);
    options_.relay = relay_.get();
    options_.hello.relay = relay_->address();
  }

  /// Waits briefly, then returns how long the key has been refused.
  Duration refused_duration() {
    const Time now = clock_.now();
    if (!first_refused_)
      first_refused_ = now;
    ::poll(nullptr, 0, static_cast<int>(kPollInterval / std::chrono::milliseconds(1)));
    return now - *first_refused_;
  }

  /// Returns false if the run has ended or this worker was terminated. Error Timeout: the deadline
  /// has passed.
  Result<bool> find_run(Time deadline) {
    if (!is_file_) {
      options_.endpoint = connect_;
      return !asked_to_end;
    }
    while (!asked_to_end) {
      const auto address = read_address(connect_);
      if (!address && address.error().code != ErrorCode::NotFound)
        return address.error();
      if (address && address->endpoint.empty()) {
        log_.info("the run has ended", {{"run", address->run}});
        return false;
      }
      if (address && address->run != options_.credentials.run) {
        return invalid_input(fmt::format("the key {} belongs to run {}, but {} belongs to run {}",
                                         options_.credentials.name,
                                         options_.credentials.run,
                                         connect_,
                                         address->run));
      }
      if (address) {
        options_.endpoint = address->endpoint;
        return true;
      }
      if (clock_.now() >= deadline) {
        return Error{
            ErrorCode::Timeout,
            fmt::format("{} did not appear in time; check that the run is running and that "
                        "its folder is on a file system shared with this host",
                        connect_)};
      }
      ::poll(nullptr, 0, static_cast<int>(kPollInterval / std::chrono::milliseconds(1)));
    }
    return false;
  }

  bool is_there() const {
    if (asked_to_end)
      return false;
    if (!is_file_)
      return true;
    const auto address = read_address(connect_);
    return !address || address->endpoint == options_.endpoint;
  }

  /// The loaded role if it can continue under this orchestrator, otherwise a new one.
  Result<std::unique_ptr<Role>> make(const Welcome& welcome) {
    if (welcome.incarnation < options_.hello.incarnation) {
      return invalid_input(
          fmt::format("this worker has already served orchestrator {} of the run; orchestrator {} "
                      "is older",
                      options_.hello.incarnation,
                      welcome.incarnation));
    }
    first_refused_.reset();
    options_.hello.incarnation = welcome.incarnation;
    options_.hello.was = welcome.name;
    grace_ = welcome.grace;
    name_process(welcome.name);
    std::string config = reusable_config(welcome.role);
    if (role_ != nullptr && config == loaded_config_ && role_->rejoin(welcome)) {
      log_.info("resumed with the loaded state", {{"actor", welcome.name}});
    } else {
      role_.reset();  // release it first: it may hold device memory
      TEMPER_TRY(auto made, make_role_(welcome));
      role_ = std::move(made);
      log_.info("role built", {{"actor", welcome.name}});
    }
    loaded_config_ = std::move(config);
    return std::unique_ptr<Role>(std::make_unique<RetainedRole>(role_));
  }

  const bool is_file_;
  const std::string connect_;
  const RoleFactory& make_role_;
  WorkerOptions options_;
  const Clock& clock_;
  const Log& log_;
  std::unique_ptr<Relay> relay_;
  std::shared_ptr<Role> role_;
  std::string loaded_config_;
  Duration grace_{};
  std::atomic<bool> lost_{false};
  bool refused_ = false;
  std::optional<Time> first_refused_;
  std::string announced_;  ///< The endpoint whose waiting message was already logged.
};

}  // namespace

Result<int> run_attached(const ActorArguments& arguments,
                         WorkerOptions options,
                         const RoleFactory& make_role,
                         const Clock& clock,
                         const Log& log) {
  TEMPER_TRY(options.credentials, read_credentials(arguments.key));
  TEMPER_TRY(options.name,
             place_of(arguments.slot, arguments.role, arguments.rank, [](const char* name) {
               return std::getenv(name);
             }));
  struct sigaction end {};
  end.sa_handler = on_end_signal;
  ::sigaction(SIGTERM, &end, nullptr);
  ::sigaction(SIGINT, &end, nullptr);
  ::signal(SIGUSR1, SIG_IGN);  // Slurm signals the whole step; only the orchestrator handles it
  options.abandon_after = kLongestWork;
  options.abandon = [](const Error& error) {
    fmt::print(stderr, "the role did not finish its work: {}\n", error.context);
    std::fflush(nullptr);
    std::_Exit(1);
  };
  Attachment attachment(arguments, std::move(options), make_role, clock, log);
  return attachment.run(std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::max(0.0, arguments.patience))));
}

}  // namespace temper::actors
