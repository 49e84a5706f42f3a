// The content of a twin: the roles of a live run, as worker processes with real engines. They work
// on the configured prompts, policy and algorithm, while simulated cards determine the times.
//
// There is one trainer, one reference and one reward worker, whatever the simulated number, and as
// few rollout workers as hold the versions in use. A rollout worker never returns to older weights:
// work of a version goes to the worker with the newest weights that are not newer, or to a new
// worker. Simulated engines never return either, so there are at most as many rollout workers as
// simulated engines, and one or two if all engines take new weights soon.
//
// Assumptions. A response is sampled as a whole under the version of its dispatch. If the simulated
// response continues under newer weights (committed while it runs, or resumed after an
// interruption), the real response is staler: all of it is as old as its first token.
//
// Equal calls give equal answers: each worker does one thing at a time, in the order of the calls,
// on one thread; a response's random numbers follow from seed, response and position.
#pragma once

#include "actors/shared_memory/shared_buffer.hpp"
#include "actors/task/prompts.hpp"
#include "actors/task/tokenizer.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/payload_store.hpp"
#include "orchestrator/run/processes/worker_pool.hpp"
#include "orchestrator/run/virtual/content.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>

namespace temper::orchestrator {

struct TwinOptions {
  ResolvedPipeline pipeline;
  std::filesystem::path base;
  std::filesystem::path worker;                                   ///< The program that runs actors.
  std::function<std::filesystem::path(std::string_view)> log_of;  ///< Of an actor's output.
};

class TwinContent final : public ContentSource {
 public:
  /// Starts the workers and waits for the first weights. `io` outlives this. Errors: the task
  /// cannot be read, a socket or a process cannot be made, a worker fails.
  static Result<std::unique_ptr<TwinContent>> create(boost::asio::io_context& io,
                                                     TwinOptions options,
                                                     const Log& log);
  /// Ends the workers.
  ~TwinContent() override;

  Status sample(const Sampling& work) override;
  Status score(LeaseId lease, std::span<const ResponseId> responses) override;
  Status judge(LeaseId lease, std::span<const ResponseId> responses) override;
  Result<actors::Judged> judged(LeaseId lease) override;
  Status train(LeaseId lease,
               const actors::Certificate& certificate,
               std::span<const ResponseId> responses) override;
  Result<actors::UpdateMetrics> trained(LeaseId lease) override;
  void release(GroupId group) override;
  Status serve() override { return pool_->serve(); }

 private:
  /// One message to a worker, and what it has to answer before the next one is sent.
  struct Job {
    std::function<bool()> ready;  ///< What it needs is there; empty: always.
    std::function<actors::OutgoingMessage()> message;
    std::vector<ResponseId> responses{};  ///< It is about.
    std::size_t owed = 1;                 ///< Answers still to come.
  };
  struct Line {
    std::deque<Job> jobs;  ///< The first one is under way while `busy`.
    bool up = false;
    bool busy = false;
  };
  struct Sampler {
    ActorId actor;
    std::optional<PolicyVersion> version;  ///< After all its jobs.
  };

  TwinContent(TwinOptions options, std::unique_ptr<actors::PromptSource> prompts);
  Status open(boost::asio::io_context& io, const Log& log);
  Status start(ActorId actor, actors::RoleKind role, std::int32_t concurrency);
  Status add_group(GroupId group, const std::optional<Draw>& draw);
  /// The rollout for work of this version, with jobs that bring it there.
  Result<ActorId> sampler_at(PolicyVersion version);

  void add(ActorId actor, Job job);
  /// Drops a payload that is released once no job speaks of it any more.
  void forget_unused(GroupId group);
  void pump();
  /// The job under way has one answer more.
  Status answered(ActorId actor, std::size_t answers = 1);
  Status wait(const std::function<bool()>& done);
  ActorId owing() const;

  Status on_message(ActorId actor, const actors::IncomingMessage& message);
  Status fail(ActorId actor, const std::string& reason);
  Status on_generated(ActorId actor, actors::Generated message);
  Status on_scored(ActorId actor, actors::ReferenceScored message);
  Status on_judged(ActorId actor, actors::Judged message);
  Status publish(const actors::WeightsHandle& handle);

  bool sampled(std::span<const ResponseId> responses);
  bool scored(std::span<const ResponseId> responses);

  const TwinOptions options_;
  actors::Tokenizer tokenizer_;
  const std::unique_ptr<actors::PromptSource> prompts_;

  PayloadStore payloads_;
  std::map<ResponseId, LeaseId> attempts_;  ///< Responses being sampled, and for which dispatch.
  std::map<GroupId, std::size_t> uses_;     ///< By jobs, once per response.
  std::set<GroupId> released_;              ///< But still in use.
  std::map<PolicyVersion, std::shared_ptr<const actors::SharedBuffer>> weights_;
  std::map<LeaseId, actors::Judged> judged_;
  std::map<LeaseId, actors::UpdateMetrics> trained_;
  std::vector<Sampler> samplers_;
  std::vector<Line> lines_;  ///< By actor.
  std::unique_ptr<WorkerPool> pool_;
};

}  // namespace temper::orchestrator
