// The work of a run on the wall clock, with its payloads: commands of the scheduler become messages
// with prompts and tokens, and the actors' answers become events. Payloads of outstanding groups
// stay here; the scheduler never sees them.
#pragma once

#include "orchestrator/run/live/actor_links.hpp"
#include "orchestrator/run/live/payload_events.hpp"
#include "orchestrator/run/tensor_store.hpp"

#include <map>
#include <memory>

namespace temper::orchestrator {

class WorkExchange {
 public:
  /// The references outlive this.
  WorkExchange(RunCore& core, ActorLinks& links, const PipelineConfig& config, const Log& log);
  /// Loads the prompts and the tokenizer. `base`: model folder; empty for `policy: synthetic`.
  /// Errors: a data file or the tokenizer is missing, cannot be read or is invalid.
  Status open(const std::filesystem::path& base);

  void execute(const command::Dispatch& c);
  void execute(const command::ScoreReference& c);
  void execute(const command::Judge& c);
  void execute(const command::Prepare& c);
  void execute(const command::Train& c);
  void execute(const command::Release& c);

  /// An actor's answer. Error: a protocol violation; nothing of the answer counts.
  Status receive(ActorId actor, actors::Generated message);
  Status receive(ActorId actor, actors::ReferenceScored message);
  Status receive(ActorId actor, actors::Judged message);

  /// Of all outstanding groups, for a checkpoint.
  const std::map<GroupId, GroupPayload>& payloads() const { return payloads_.all(); }
  /// Returns the generated responses whose tensors no longer exist; nothing is left of them.
  std::vector<ResponseId> restore(std::map<GroupId, GroupPayload> payloads);
  /// Where engines put tensors of responses, and the trainer finds them.
  actors::TensorPlace tensors() const;
  /// Extends the leases of tensors in a store that needs it. Call it often.
  void refresh_tensors(Time now);

 private:
  Status start_problem(const command::Dispatch& c);
  template <class M>
  Status answer(ActorId actor, M message);
  template <class M, class E>
  Status accept(const Sender& sender, M message, CheckedAnswer<E> told);
  void screen(const Sender& sender,
              actors::Generated& message,
              CheckedAnswer<event::Generated>& told) const;
  /// Fails the responses whose tensors are not as their engine says.
  void screen_tensors(const Sender& sender,
                      actors::Generated& message,
                      CheckedAnswer<event::Generated>& told) const;
  /// Tells the scheduler which responses of a batch have lost their tensors. False: none.
  bool take_back_without_tensors(LeaseId lease, const std::vector<ResponseId>& batch);
  /// Takes the tensors of responses that are done, and removes those of all others.
  void keep_tensors(actors::Generated& message);

  RunCore& core_;
  ActorLinks& links_;
  const PipelineConfig& config_;
  const Log log_;
  const actors::ResponseLimits limits_;
  actors::Tokenizer tokenizer_;
  std::unique_ptr<actors::PromptSource> prompts_;
  std::unique_ptr<actors::PromptSource> problems_;  ///< Of evaluations; null: there are none.
  std::unique_ptr<TensorStore> tensors_;            ///< Null: responses can have none.
  static constexpr int kMostTakenBack = 100;
  int taken_back_ = 0;  ///< Batches whose tensors were gone, since one was sent.
  PayloadStore payloads_;
  PayloadStore evaluated_;  ///< Of the evaluation under way.
};

}  // namespace temper::orchestrator
