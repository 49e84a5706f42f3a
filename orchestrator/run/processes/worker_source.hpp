// The sources of a run's workers: processes that the run starts, and workers that others start and
// that attach. Both have one interface. All calls and callbacks on the thread that runs the Asio
// loop.
#pragma once

#include "actors/asio/router.hpp"
#include "orchestrator/run/processes/connections.hpp"
#include "orchestrator/run/processes/key_ring.hpp"
#include "orchestrator/run/processes/launch.hpp"
#include "orchestrator/run/processes/supervisor.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// The end of a worker.
struct WorkerEnd {
  std::string reason;
  bool permanent = false;   ///< Another start would fail in the same way.
  bool not_finite = false;  ///< See actors::Failed.
};

class WorkerSource {
 public:
  /// A worker ended. For a dismissed one it is called with an empty reason once nothing is left of
  /// it.
  using OnEnd = std::function<void(ActorId, WorkerEnd)>;

  virtual ~WorkerSource() = default;
  /// Provides a worker for this actor; an earlier one is dismissed first. A failure is an OnEnd.
  virtual void provide(ActorId actor) = 0;
  /// Ends the connection; no other worker is provided.
  virtual void forget(ActorId actor, const std::string& why) = 0;
  /// Ends the worker; no other worker is provided.
  virtual void dismiss(ActorId actor) = 0;
  /// The number of workers that have not ended yet.
  virtual std::size_t left() const = 0;
  /// Gives up all that are left.
  virtual void abandon_all() = 0;
};

/// Processes of this machine, which end with the run.
class LaunchedWorkers final : public WorkerSource {
 public:
  struct Plan {
    std::vector<std::string> names;             ///< By actor.
    std::vector<actors::EngineConfig> engines;  ///< By actor.
    std::filesystem::path worker;               ///< The program that runs an actor.
    std::vector<std::uint32_t> cores;           ///< For all of them; empty: any.
    std::function<std::filesystem::path(std::string_view name)> log_of;
    /// Whether the actor's start is put off; start_put_off() follows. Empty: never.
    std::function<bool(ActorId)> puts_off;
  };
  /// The references outlive this.
  LaunchedWorkers(boost::asio::io_context& io,
                  Plan plan,
                  LaunchCredentials& credentials,
                  actors::AsioRouter& router,
                  Connections& connections,
                  OnEnd on_end);

  /// Adds an actor after the others.
  void add(std::string name, actors::EngineConfig engine);

  void provide(ActorId actor) override;
  void forget(ActorId actor, const std::string& why) override;
  void dismiss(ActorId actor) override;
  std::size_t left() const override { return supervisor_.running(); }
  void abandon_all() override { supervisor_.stop_all(Duration(0)); }

  void start_put_off(ActorId actor) { start(actor); }
  /// Signals the worker's process group, if there is one.
  void signal(ActorId actor, int number);

 private:
  void start(ActorId actor);
  void on_exit(const ChildExit& exit);

  Plan plan_;
  LaunchCredentials& credentials_;
  actors::AsioRouter& router_;
  Connections& connections_;
  const OnEnd on_end_;
  std::vector<bool> again_;  ///< By actor: start it once its process has ended.
  Supervisor supervisor_;
};

/// Workers that others start. They find the run by RUN_DIR/endpoint; RUN_DIR/keys authenticates
/// them.
class AttachedWorkers final : public WorkerSource {
 public:
  struct Place {
    std::filesystem::path run_dir;
    std::string advertise;  ///< transport.advertise.
  };
  /// Becomes the run's orchestrator with the next number, accepts the run's keys, and publishes the
  /// endpoint. Makes a key for any slot if the run has none. The references outlive this. Errors:
  /// those of KeyRing::begin_incarnation(), KeyRing::make() and actors::write_address().
  static Result<std::unique_ptr<AttachedWorkers>> open(Place place,
                                                       KeyRing ring,
                                                       actors::AsioRouter& router,
                                                       Connections& connections,
                                                       OnEnd on_end);

  const std::string& run() const { return ring_.head().run; }
  std::uint64_t incarnation() const { return incarnation_; }

  /// As Connections::admit_attached(), for a peer whose key was accepted as `user`. Errors:
  /// InvalidInput if the key is not of `temper keys make` or was revoked; those of
  /// admit_attached(), of which Unavailable lets the worker wait.
  Result<ActorId> admit(const actors::PeerId& peer,
                        const std::string& user,
                        const actors::Hello& hello,
                        Time now);
  /// Applies keys that were made or revoked. To be called regularly. Error: the run has another
  /// orchestrator.
  Status look_again(Time now);
  /// The orchestrator ends: waiting workers are told. Finished: later workers read that in the
  /// endpoint file; otherwise they wait for the next orchestrator.
  enum class Run { Finished, GoesOnLater };
  void say_the_end(Run run);
  /// The slots have changed since keys were accepted.
  void places_changed();
  /// The worker said that it leaves.
  void left(ActorId actor);

  void provide(ActorId actor) override;
  void forget(ActorId actor, const std::string& why) override;
  void dismiss(ActorId actor) override { forget(actor, "the run has no more work for it"); }
  std::size_t left() const override;
  void abandon_all() override;

 private:
  AttachedWorkers(Place place,
                  KeyRing ring,
                  actors::AsioRouter& router,
                  Connections& connections,
                  OnEnd on_end);
  void let_in_keys();
  Status say_where(const std::string& endpoint) const;

  const Place place_;
  KeyRing ring_;
  actors::AsioRouter& router_;
  Connections& connections_;
  const OnEnd on_end_;
  std::uint64_t incarnation_ = 0;
  Time looked_{};
  std::map<std::string, std::string> let_in_;  ///< Public key by name.
  std::map<actors::PeerId, Time> waiting_;     ///< Peers that were told to retry, and when.
};

}  // namespace temper::orchestrator
