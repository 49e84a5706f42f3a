// The work of a simulated run, in both directions: commands of the scheduler become messages that
// count tokens instead of carrying them, and the actors' answers become events.
//
// With a content source (content.hpp) the same commands go to it too. When an actor says that it
// has judged or trained, the source supplies the result: rewards, and the metrics of the step
// except its tokens and passes, which are the simulated ones. Times, lengths and order are as
// without it.
#pragma once

#include "actors/protocol/counted.hpp"
#include "orchestrator/run/core/run_core.hpp"
#include "orchestrator/run/virtual/content.hpp"
#include "orchestrator/run/virtual/simulated_fleet.hpp"

#include <map>
#include <memory>
#include <optional>

namespace temper::orchestrator {

class CountedWork {
 public:
  /// Whether responses have tensors, which engines hold until they are told that these are no
  /// longer needed.
  enum class Tensors { None, Held };
  /// `content`: null where work is only counted. The references outlive this.
  CountedWork(RunCore& core,
              SimulatedFleet& fleet,
              std::unique_ptr<ContentSource> content,
              Tensors tensors,
              const Log& log);

  void execute(const command::Dispatch& c);
  void execute(const command::Cancel& c);
  void execute(const command::Withdraw& c);
  void execute(const command::ScoreReference& c);
  void execute(const command::Judge& c);
  void execute(const command::Train& c);
  void execute(const command::Prepare& c);
  void execute(const command::StageWeights& c);
  void execute(const command::CommitWeights& c);
  void execute(const command::Switch& c);
  void execute(const command::SaveCheckpoint& c);
  void execute(const command::Release& c);

  /// The event of an actor's message. None: the content source failed, which ends the run. Error: a
  /// protocol violation.
  Result<std::optional<Event>> to_event(ActorId actor, const actors::IncomingMessage& message);

  /// Lets the content source be heard. To be called now and then.
  void serve();
  /// The run is over: ends the content source.
  void end_content() { content_.reset(); }
  /// The run continues from a checkpoint: published weights, tool calls and tensors are void.
  /// Returns the responses whose tensors are lost.
  std::vector<ResponseId> restore();

 private:
  Result<std::optional<Event>> to_judged(ActorId actor, actors::Judged message);
  Result<std::optional<Event>> to_trained(ActorId actor, actors::Trained message);
  event::Generated to_generated(ActorId actor, actors::CountedGenerated message);
  Tokens length_of(ResponseId r) const;
  actors::CountedTrain::Item item_of(ResponseId r) const;
  /// The run ends if the content source reports an error.
  void follow(const Status& status);

  RunCore& core_;
  SimulatedFleet& fleet_;
  std::unique_ptr<ContentSource> content_;  ///< May be null.
  const Log log_;
  std::map<PolicyVersion, actors::WeightsHandle> weights_;  ///< The last few.
  /// Interrupted responses whose tools continue: when they answer.
  std::map<ResponseId, Time> answered_;
  const Tensors tensors_;
  std::map<ResponseId, ActorId> holders_;  ///< The engine that holds the tensors of a response.
};

}  // namespace temper::orchestrator
