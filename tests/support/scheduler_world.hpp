// A random world around a scheduler: actors that take random times, die, hang, fail samples, answer
// late and lie, all drawn from one seed. What the scheduler does in it is recorded and audited.
// What an actor says is held against the claims first, as drivers do; one that never lied is
// believed.
#pragma once

#include "core/random.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator::testing {

/// Probabilities per opportunity; 0 turns a kind of trouble off.
struct Chaos {
  double crash = 0;          ///< An actor dies when a command reaches it.
  double trainer_crash = 0;  ///< The same for the trainer.
  double hang = 0;           ///< A command is swallowed; its deadline must save the run.
  double late_result = 0;    ///< Work of a dead actor still arrives.
  double failed_sample = 0;  ///< A response cannot be generated or judged.
  double stop = 0;           ///< The user stops the run at some update.
  double refuse_onload = 0;  ///< The optimizer does not fit back.
  double lie = 0;            ///< An actor says something else.
  double scale = 0;          ///< The user changes the number of actors at some event.
  double lost_tensors = 0;   ///< Of a generated response, at a rollback.
  double lost_in_batch = 0;  ///< Some tensors of a batch are gone before the trainer is sent it.
};

struct Played {
  command::Finish finish;
  AuditReport audit;
  std::uint64_t events = 0;
  std::uint64_t lies_told = 0, lies_found = 0;
  std::uint64_t responses_lost = 0, lost_in_batch = 0;
  /// With one version per response: most versions whose responses an engine had at once.
  std::size_t most_versions = 0;
  bool stuck = false;

  /// Why the run ended, in words.
  std::string why() const { return end_of(finish, {}).reason; }
};

/// A small random run: one to three engines, eta 0 to 4, any placement.
SchedulerConfig random_config(Random& random);

class World {
 public:
  World(SchedulerConfig config, const Chaos& chaos, std::uint64_t seed);

  /// Plays until the scheduler finishes, or `most_events` were delivered (then `stuck`).
  Played play(std::uint64_t most_events = 50000);
  /// Called with every record, e.g. to replay or to store it.
  std::function<void(const Record&)> on_record;

 private:
  struct Running {
    LeaseId lease;
    std::int64_t left = 0;
    PolicyVersion began;  ///< The engine's version when it arrived.
    std::vector<actors::Segment> segments;
  };
  struct Actor {
    std::uint64_t incarnation = 0;
    bool alive = false;
    bool lied = false;           ///< Since it was launched: what it says next may not fit.
    Time next_in{}, next_out{};  ///< Channels are first in, first out.
    std::optional<PolicyVersion> version, staged;
    std::map<ResponseId, Running> running;
  };

  void deliver(const Event& event);
  void maybe_scale();
  void obey(const Command& command);
  void restart_from_checkpoint(const std::string& reason);
  /// The driver finds that tensors of these responses are gone, as often as `chaos` says, and sends
  /// the trainer nothing.
  bool loses_tensors(LeaseId lease, const std::vector<ResponseId>& responses);
  /// Runs `action` on the actor after its input delay, unless it died meanwhile. What nobody waits
  /// for an answer to is not swallowed: an actor that reads on has read it.
  enum class Answer { Awaited, None };
  void to_actor(ActorId actor, std::function<void(Actor&)> action, Answer answer = Answer::Awaited);
  /// Delivers `event` from the actor after its output delay.
  void from_actor(ActorId actor, Event event);
  /// What an actor says arrives.
  void hear(ActorId actor, Event event);
  void crash(ActorId actor);
  void at(Time due, std::function<void()> action);
  Duration delay(double mean_ms);
  void generate(ActorId id, Actor& actor, const command::Dispatch& c);
  void finish_response(ActorId id, ResponseId response, Time not_before);
  void count_versions(const Actor& actor);
  void split_segments(Actor& actor, PolicyVersion next);
  void hand_back(ActorId id, Actor& actor, const std::set<ResponseId>& responses);

  void act(const command::Launch& c);
  void act(const command::Discard& c);
  void act(const command::Retire& c);
  void act(const command::Dispatch& c);
  void act(const command::Cancel& c);
  void act(const command::Withdraw& c);
  void act(const command::ScoreReference& c);
  void act(const command::Judge& c);
  void act(const command::Train& c);
  void act(const command::Prepare& c);
  void act(const command::StageWeights& c);
  void act(const command::CommitWeights& c);
  void act(const command::Switch& c);
  void act(const command::SaveCheckpoint& c);
  void act(const command::Release&) {}
  void act(const command::Evaluated&) {}
  void act(const command::Waiting&) {}
  void act(const command::Rollback& c);
  void act(const command::Finish& c);

  SchedulerConfig config_;  ///< With the actors that there are by now.
  const Chaos chaos_;
  Random random_;
  Scheduler scheduler_;
  Auditor auditor_;
  std::vector<Actor> actors_;
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> agenda_;
  std::uint64_t next_agenda_ = 0;
  Time now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t checkpoint_sequence_ = 0;
  std::string checkpoint_;
  PolicyVersion trainer_version_, checkpoint_version_;
  std::set<ResponseId> prepared_;  ///< Since the trainer's last update.
  std::int32_t rollbacks_ = 0;
  std::uint64_t lies_told_ = 0, lies_found_ = 0;
  std::uint64_t responses_lost_ = 0, lost_in_batch_ = 0;
  std::size_t most_versions_ = 0;
  std::optional<std::string> rollback_;
  std::optional<command::Finish> finish_;
};

}  // namespace temper::orchestrator::testing
