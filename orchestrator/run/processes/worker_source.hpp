// Where the workers of a run come from: it starts them itself, or others do and it waits for them.
// A driver asks the same of both. All calls and callbacks on the thread that runs the Asio loop.
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
  bool permanent = false;  ///< Another start would fail in the same way.
};

class WorkerSource {
 public:
  /// What becomes of a worker by itself. One that was dismissed is told of with an empty reason,
  /// once nothing of it is left.
  using OnEnd = std::function<void(ActorId, WorkerEnd)>;

  virtual ~WorkerSource() = default;
  /// A worker shall be this actor; one that is, is let go first. That none can be is an OnEnd.
  virtual void provide(ActorId actor) = 0;
  /// The connection is of no use any more; nobody else is asked for.
  virtual void forget(ActorId actor, const std::string& why) = 0;
  /// The worker is to end, and none to take its place.
  virtual void dismiss(ActorId actor) = 0;
  /// Workers of which something is left.
  virtual std::size_t left() const = 0;
  /// All that are left are given up.
  virtual void abandon_all() = 0;
};

/// Processes of this machine, which end with the run.
class LaunchedWorkers final : public WorkerSource {
 public:
  struct Plan {
    std::vector<std::string> names;             ///< By actor.
    std::vector<actors::EngineConfig> engines;  ///< By actor.
    std::filesystem::path worker;               ///< The program that runs an actor.
    std::vector<std::uint32_t> cores;           ///< Of all of them; empty: any.
    std::function<std::filesystem::path(std::string_view name)> log_of;
    /// Whether the actor is not to start yet; then start_put_off() is called once it can. None:
    /// never.
    std::function<bool(ActorId)> puts_off;
  };
  /// The references outlive this.
  LaunchedWorkers(boost::asio::io_context& io,
                  Plan plan,
                  Handout& handout,
                  actors::AsioRouter& router,
                  Connections& connections,
                  OnEnd on_end);

  /// One more actor, behind the others.
  void add(std::string name, actors::EngineConfig engine);

  void provide(ActorId actor) override;
  void forget(ActorId actor, const std::string& why) override;
  void dismiss(ActorId actor) override;
  std::size_t left() const override { return supervisor_.running(); }
  void abandon_all() override { supervisor_.stop_all(Duration(0)); }

  void start_put_off(ActorId actor) { start(actor); }
  /// To the worker's process and all of its group; without effect where there is none.
  void signal(ActorId actor, int number);

 private:
  void start(ActorId actor);
  void on_exit(const ChildExit& exit);

  Plan plan_;
  Handout& handout_;
  actors::AsioRouter& router_;
  Connections& connections_;
  const OnEnd on_end_;
  std::vector<bool> again_;  ///< Per actor: start once its process has ended.
  Supervisor supervisor_;
};

/// Workers that others start. They find the run by RUN_DIR/endpoint and are let in by RUN_DIR/keys.
class AttachedWorkers final : public WorkerSource {
 public:
  struct Place {
    std::filesystem::path run_dir;
    std::string advertise;  ///< As of the configuration.
  };
  /// Becomes the run's orchestrator with the next number, lets in its keys, and says where it is.
  /// Where the run has no key, one for any place is made. The references outlive this.
  static Result<std::unique_ptr<AttachedWorkers>> open(Place place,
                                                       KeyRing ring,
                                                       actors::AsioRouter& router,
                                                       Connections& connections,
                                                       OnEnd on_end);

  const std::string& run() const { return ring_.head().run; }
  std::uint64_t incarnation() const { return incarnation_; }

  /// As Connections::admit_attached(), of a peer whose key was let in as `user`.
  Result<ActorId> admit(const actors::PeerId& peer,
                        const std::string& user,
                        const actors::Hello& hello,
                        Time now);
  /// Now and then: keys that were made or revoked. Error: the run has another orchestrator.
  Status look_again(Time now);
  /// The orchestrator ends: who waits for a place is told. Finished: who comes finds that in the
  /// file; else they wait for the next orchestrator.
  enum class Run { Finished, GoesOnLater };
  void say_the_end(Run run);
  /// There are other places than when keys were let in.
  void places_changed();
  /// The worker has said that it goes.
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
  std::map<std::string, std::string> let_in_;  ///< Open key by name.
  std::map<actors::PeerId, Time> waiting_;     ///< Who was told to come again, and when.
};

}  // namespace temper::orchestrator
